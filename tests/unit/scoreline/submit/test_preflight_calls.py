"""Preflight of calls: programs, keys and host names are looked up, and nothing is called."""

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from executor.python_host.import_check import ImportTimeout, InterpreterUnusable
from scoreline.submit.preflight_calls import check_calls
from scoreline.submit.preflight_finding import PreflightFinding

URL = "https://api.example.org/ask"


def found(*specs: TargetSpec | EvaluatorSpec, workdir: str = "", **environ: str) -> list[PreflightFinding]:
    """Check a batch of these targets and evaluators."""
    targets = tuple(spec for spec in specs if isinstance(spec, TargetSpec))
    judges = tuple(spec for spec in specs if isinstance(spec, EvaluatorSpec))
    batch = BatchSpec(
        "nightly", targets or (TargetSpec("simulated", "simulated"),), evaluators=judges, workdir=workdir
    )
    return check_calls(batch, environ, unsandboxed=True)


def python(function: str, **options: str) -> TargetSpec:
    """Make a target that is a function."""
    return TargetSpec("python", f"python:{function}", {"function": function, **options})


def command(words: str, **files: str) -> TargetSpec:
    """Make a target that is a program."""
    return TargetSpec("command", "program", {"command": words, "files": {**files}})


def resolving(monkeypatch: pytest.MonkeyPatch, error: Exception | None) -> list[str]:
    """Replace name resolution; returns the hosts that are resolved."""
    hosts: list[str] = []

    def resolve(host: str, _port: None) -> list[object]:
        hosts.append(host)
        if error:
            raise error
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    return hosts


def importing(outcome: Callable[[list[str]], dict[str, str]], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Replace the import of functions; returns the interpreters that are started."""
    interpreters: list[str] = []

    def check(functions: list[str], *, interpreter: str, **_: object) -> dict[str, str]:
        interpreters.append(interpreter)
        return outcome(functions)

    monkeypatch.setattr("scoreline.submit.preflight_calls.broken_imports", check)
    return interpreters


def test_a_batch_that_calls_nothing_has_nothing_to_check():
    """A simulated target needs no key and no program."""
    assert found() == []


@pytest.mark.parametrize(
    ("error", "is_fatal"),
    [
        (socket.gaierror(socket.EAI_NONAME, "unknown"), True),
        (socket.gaierror(socket.EAI_AGAIN, "try again"), False),
        (UnicodeError("label too long"), True),
    ],
)
def test_only_a_host_that_does_not_exist_is_fatal(
    error: Exception, is_fatal: bool, monkeypatch: pytest.MonkeyPatch
):
    """A name server that is unavailable may be back when the batch runs."""
    resolving(monkeypatch, error)
    [finding] = found(TargetSpec("http", "ask", {"url": URL}))
    assert finding.text.startswith("ask: the host api.example.org can't be resolved: ")
    assert finding.is_fatal is is_fatal


@pytest.mark.parametrize("proxy", ["HTTPS_PROXY", "https_proxy", "ALL_PROXY"])
def test_a_proxy_resolves_hosts_itself(proxy: str, monkeypatch: pytest.MonkeyPatch):
    """No host is resolved where a proxy is set."""
    hosts = resolving(monkeypatch, None)
    target = TargetSpec("http", "ask", {"url": URL})
    assert found(target, **{proxy: "http://proxy:3128"}) == []
    assert hosts == []
    assert found(target) == []
    assert hosts == ["api.example.org"]


def test_a_model_and_a_judge_need_their_key(monkeypatch: pytest.MonkeyPatch):
    """The findings are in the order of the spec; with the key only the host is resolved."""
    hosts = resolving(monkeypatch, None)
    target = TargetSpec("anthropic", "haiku", {"model": "claude-haiku-4-5"})
    judge = EvaluatorSpec("llm_judge", "judge", {"model": "anthropic/claude-haiku-4-5"})
    assert [each.text.partition(":")[0] for each in found(target, judge)] == ["haiku", "judge"]
    assert hosts == []
    assert found(target, judge, ANTHROPIC_API_KEY="sim") == []
    assert hosts == ["api.anthropic.com"] * 2


def test_a_program_is_looked_for_where_the_sandbox_finds_it(tmp_path: Path):
    """By its path, among the given files, or by its name on the sandbox's search path."""
    (tmp_path / "run.sh").write_text("#!/bin/sh\n")
    data = {"EVAL_DATA_DIR": str(tmp_path / "data")}
    for words in ("sh -c true", "/bin/sh"):
        assert found(command(words), **data) == []
    given = command("tools/run.sh", **{"tools/run.sh": "run.sh"})
    assert found(given, workdir=str(tmp_path), **data) == []
    for words in ("no-such-program", "/no/such/program", "tools/run.sh"):
        [finding] = found(command(words), **data)
        assert finding.text.startswith(f"program: there is no program {words!r} in the sandbox")


def test_a_missing_file_of_a_program_is_named(tmp_path: Path):
    """The program itself is checked as well."""
    target = command("no-such-program", **{"a.txt": "missing.txt"})
    findings = found(target, workdir=str(tmp_path), EVAL_DATA_DIR=str(tmp_path / "data"))
    assert len(findings) == 2
    assert "missing.txt" in findings[0].text


def test_each_interpreter_is_started_once(monkeypatch: pytest.MonkeyPatch):
    """Functions that share one are imported together, and the first line of an error is shown."""
    interpreters = importing(lambda functions: {functions[0]: "no module\nat line 1"}, monkeypatch)
    specs = (python("app:a"), python("app:b"), python("app:c", interpreter="/venv/python"))
    findings = found(*specs, workdir="/work")
    assert sorted(interpreters) == ["", "/venv/python"]
    assert [each.text for each in findings] == [
        "python:app:a can't be imported from /work: no module",
        "python:app:c can't be imported from /work: no module",
    ]


def test_a_slow_import_is_a_warning_and_a_broken_interpreter_is_fatal(monkeypatch: pytest.MonkeyPatch):
    """A model that loads for a minute may be wanted; an interpreter that can't start never is."""

    def fails(functions: list[str]) -> dict[str, str]:
        raise ImportTimeout if functions == ["app:slow"] else InterpreterUnusable("it is too old")

    importing(fails, monkeypatch)
    slow, broken = found(python("app:slow"), python("app:b", interpreter="/old/python"))
    assert (slow.is_fatal, broken.is_fatal) == (False, True)
    assert "still importing after 3 s" in slow.text
    assert broken.text == "python:app:b: it is too old. Name another with `interpreter`."
