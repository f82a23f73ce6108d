"""Preflight of what a batch will call: functions, programs, keys and addresses.

Nothing is called: a function is imported, a program looked up, a host name resolved. Each check is bounded
in time; one that is not done by then is a warning.
"""

import shutil
import socket
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from concurrent.futures import TimeoutError as Late
from functools import partial
from pathlib import Path, PurePosixPath
from urllib.parse import urlsplit

from domain.batch_spec import BatchSpec, EvaluatorSpec, Options, TargetSpec
from executor.contract import Permanent
from executor.options import read_options
from executor.python_host.import_check import ImportTimeout, InterpreterUnusable, broken_imports
from executor.sandbox.bubblewrap_options import SEARCH_PATH
from executor.sandbox.sandbox import Sandbox
from executor.targets.command import CommandOptions
from executor.targets.host_files import host_file
from executor.targets.programs import words
from providers.endpoint import endpoint_of
from providers.table import PROVIDERS, split_model
from scoreline.private_files import default_root
from scoreline.submit.preflight_finding import PreflightFinding

IMPORT_SECONDS = 3.0
RESOLVE_SECONDS = 1.0
PROXIES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
Check = Callable[[], list[PreflightFinding]]


def check_calls(
    batch: BatchSpec, environ: Mapping[str, str], *, unsandboxed: bool
) -> list[PreflightFinding]:
    """Run all checks at the same time; returns what is wrong, in the order of the spec."""
    checks = list(_checks(batch, environ, unsandboxed=unsandboxed))
    if not checks:
        return []
    with ThreadPoolExecutor(len(checks)) as pool:
        return [finding for found in pool.map(lambda check: check(), checks) for finding in found]


def _checks(batch: BatchSpec, environ: Mapping[str, str], *, unsandboxed: bool) -> Iterator[Check]:
    for interpreter, functions in _functions(batch).items():
        yield partial(_imports, batch, environ, interpreter, functions)
    for target in batch.targets:
        if target.type == "command":
            yield partial(_program, batch, target, environ)
        elif target.type == "http":
            yield partial(_address, str(target.options["url"]), target.label, environ)
        elif target.type in PROVIDERS:
            yield partial(_model, target.type, target.options, target.label, environ)
    for judge in batch.evaluators:
        named = split_model(str(judge.options.get("model"))) if judge.type == "llm_judge" else None
        if named:
            yield partial(_model, named[0], {**judge.options, "model": named[1]}, judge.name, environ)
    if {"command", "code"} & {spec.type for spec in _specs(batch)}:
        yield partial(_sandbox, unsandboxed=unsandboxed)


def _specs(batch: BatchSpec) -> list[TargetSpec | EvaluatorSpec]:
    return [*batch.targets, *batch.evaluators]


def _functions(batch: BatchSpec) -> dict[str, list[str]]:
    """Group the batch's functions by interpreter: each starts once."""
    found: dict[str, list[str]] = defaultdict(list)
    for spec in _specs(batch):
        if spec.type == "python":
            function = str(spec.options["function"])
            interpreter = str(spec.options.get("interpreter") or batch.interpreter)
            if function not in found[interpreter]:
                found[interpreter].append(function)
    return found


def _imports(
    batch: BatchSpec, environ: Mapping[str, str], interpreter: str, functions: list[str]
) -> list[PreflightFinding]:
    try:
        broken = broken_imports(
            functions,
            interpreter=interpreter,
            workdir=batch.workdir,
            environ=environ,
            seconds=IMPORT_SECONDS,
        )
    except InterpreterUnusable as error:
        return [PreflightFinding(f"python:{functions[0]}: {error}. Name another with `interpreter`.")]
    except ImportTimeout:
        names = ", ".join(f"python:{function}" for function in functions)
        return [
            PreflightFinding(
                f"{names}: still importing after {IMPORT_SECONDS:g} s, not checked", is_fatal=False
            )
        ]
    return [
        PreflightFinding(f"python:{function} can't be imported from {batch.workdir}: {why.splitlines()[0]}")
        for function, why in broken.items()
    ]


def _program(batch: BatchSpec, target: TargetSpec, environ: Mapping[str, str]) -> list[PreflightFinding]:
    options = read_options(CommandOptions, target.options, of="the command target")
    data_dir = environ.get("EVAL_DATA_DIR") or str(default_root())
    found = []
    for path in options.files.values():
        try:
            host_file(Path(batch.workdir) / path, data_dir=data_dir)
        except Permanent as fault:
            found.append(PreflightFinding(f"{target.label}: {fault.message}"))
    program = words(options.command)[0]
    if not _is_there(program, options):
        text = f"there is no program {program!r} in the sandbox: install it, or give it with `files`"
        found.append(PreflightFinding(f"{target.label}: {text}"))
    return found


def _is_there(program: str, options: CommandOptions) -> bool:
    if program.startswith("/"):
        return Path(program).exists()
    if "/" in program:
        name = PurePosixPath(program)
        return any(name.is_relative_to(PurePosixPath(given)) for given in options.files)
    return shutil.which(program, path=options.env.get("PATH", SEARCH_PATH)) is not None


def _sandbox(*, unsandboxed: bool) -> list[PreflightFinding]:
    refusal = Sandbox(allow_unsandboxed=unsandboxed).check()
    return [PreflightFinding(refusal)] if refusal else []


def _model(
    provider: str, options: Options, name: str, environ: Mapping[str, str]
) -> list[PreflightFinding]:
    try:
        access = endpoint_of(provider, options, environ)
    except ValueError as error:
        return [PreflightFinding(f"{name}: {error}")]
    return _address(access.base_url, name, environ)


def _address(url: str, name: str, environ: Mapping[str, str]) -> list[PreflightFinding]:
    """Resolve a host; a proxy would do that itself, and a name server that does not answer may yet."""
    host = urlsplit(url).hostname or ""
    if not host or any(environ.get(each) or environ.get(each.lower()) for each in PROXIES):
        return []
    pool = ThreadPoolExecutor(1)
    try:
        pool.submit(socket.getaddrinfo, host, None).result(RESOLVE_SECONDS)
    except Late:
        return [
            PreflightFinding(f"{name}: {host} is not resolved after {RESOLVE_SECONDS:g} s", is_fatal=False)
        ]
    except socket.gaierror as error:
        is_unknown = error.errno in {socket.EAI_NONAME, getattr(socket, "EAI_NODATA", socket.EAI_NONAME)}
        return [
            PreflightFinding(
                f"{name}: the host {host} can't be resolved: {error.strerror}", is_fatal=is_unknown
            )
        ]
    except (OSError, UnicodeError) as error:
        return [PreflightFinding(f"{name}: the host {host} can't be resolved: {error}")]
    finally:
        pool.shutdown(wait=False)
    return []
