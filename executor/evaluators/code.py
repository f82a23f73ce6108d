r"""The `code` evaluator: a program that contains the answer passes if it runs to its end.

    evaluators:
      - type: code
        program: "{prompt}{output}\n{test}\ncheck({entry_point})\n"
        timeout: 3

The program runs in the sandbox, with empty standard input. An answer that hangs, crashes or exceeds its
output limit has failed, and so has one that ends its process before the tests have ended, with any exit
code: see `completion`. A missing sandbox is not a failure of the answer.

A Python program is run by a driver, which proves its end. A program in another language proves it itself,
by printing `{sentinel}` as its last line.
"""

import re
import secrets
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Self

from pydantic import Field, model_validator

from domain.batch_spec import Options
from domain.template import UnknownField, placeholders, render
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, Permanent, ScoringRequest
from executor.evaluators import code_driver
from executor.evaluators.completion import completion_channel
from executor.options import OptionModel, read_options
from executor.sandbox.job import SandboxJob, SandboxLimits, SandboxOutcome
from executor.sandbox.sandbox import Sandbox

_PROGRAM = "program.py"
_DRIVER = "scoreline-driver.py"
_DRIVER_SOURCE = Path(code_driver.__file__).read_bytes()
_PYTHON = re.compile(r"(.*/)?(python|pypy)[0-9.]*")
_RUN_SOMETHING_ELSE = frozenset({"-m", "-c"})
_SENTINEL = "sentinel"
_ENDED_EARLY = "ended early: exit code 0, but the program did not run to its end"

_FRAME = re.compile(r'^ *File ".*$', re.MULTILINE)
_TRACEBACK_CHARACTERS = 8_000
_ERROR_CHARACTERS = 200
_REASON_CHARACTERS = 500


class CodeOptions(OptionModel):
    """Which program, how long, and by whom it is read."""

    program: Annotated[str, Field(min_length=1)]
    timeout: Annotated[float, Field(gt=0, le=3_600)] = 3.0
    interpreter: Annotated[tuple[str, ...], Field(min_length=1)] = ("python3", "-I", "-B")
    limits: SandboxLimits = SandboxLimits()

    @property
    def has_driver(self) -> bool:
        """Whether the interpreter is a Python that is given a file."""
        name, *flags = self.interpreter
        return bool(_PYTHON.fullmatch(name)) and _RUN_SOMETHING_ELSE.isdisjoint(flags)

    @model_validator(mode="after")
    def _proves_its_end(self) -> Self:
        if not self.has_driver and _SENTINEL not in placeholders(self.program):
            raise ValueError(
                f"{' '.join(self.interpreter)!r} does not run a Python file: have the program print "
                f"{{{_SENTINEL}}} as its last line, after the tests"
            )
        return self


class CodeEvaluator:
    """Scores an answer by running it."""

    def __init__(self, name: str, options: CodeOptions, sandbox: Sandbox) -> None:
        self._name = name
        self._options = options
        self._sandbox = sandbox

    async def score(self, judged: ScoringRequest) -> p.Score:
        """Run the program once."""
        run = self._run_driven if self._options.has_driver else self._run_printing
        outcome, is_complete = await run(judged)
        passed = outcome.exit_code == 0 and outcome.killed_by is None and is_complete
        reason = "" if passed else _why(outcome, self._options)
        return p.Score(evaluator=self._name, score=float(passed), passed=passed, reason=reason)

    async def _run_driven(self, judged: ScoringRequest) -> tuple[SandboxOutcome, bool]:
        """Run a Python program under the driver, which reports its end."""
        with completion_channel() as channel:
            arguments = (_DRIVER, _PROGRAM, str(channel.descriptor))
            job = replace(self._job(judged, arguments), channel=channel.descriptor)
            outcome = await self._sandbox.run(job)
            return outcome, channel.is_complete()

    async def _run_printing(self, judged: ScoringRequest) -> tuple[SandboxOutcome, bool]:
        """Run a program of another language, whose last line is the sentinel."""
        sentinel = secrets.token_hex()
        outcome = await self._sandbox.run(self._job(judged, (_PROGRAM,), sentinel=sentinel))
        return outcome, outcome.stdout.rstrip().endswith(sentinel.encode())

    async def aclose(self) -> None:
        """Leave nothing behind: each run has taken all of its own along."""

    def _job(self, judged: ScoringRequest, arguments: tuple[str, ...], **reserved: str) -> SandboxJob:
        options = self._options
        try:
            program = render(options.program, {**judged.fields, "output": judged.output, **reserved})
        except UnknownField as error:
            raise Permanent(
                "template", f"the program needs {error.name!r}, and the case has none"
            ) from None
        return SandboxJob(
            (*options.interpreter, *arguments),
            seconds=options.timeout,
            texts={_PROGRAM: program.encode(errors="replace"), _DRIVER: _DRIVER_SOURCE},
            limits=options.limits,
        )


def _why(outcome: SandboxOutcome, options: CodeOptions) -> str:
    limits = options.limits
    match outcome.killed_by:
        case "time" if outcome.seconds >= options.timeout:
            return f"timed out after {options.timeout:g} s"
        case "time":
            return f"took more than {limits.cpu_seconds} s of processor time"
        case "output":
            return f"wrote more than {limits.output_kb} kB"
        case "memory":
            return f"took more than {limits.memory_mb} MB of memory"
        case "processes":
            return f"started more than {limits.processes} processes"
        case "disk":
            return f"made more than {limits.files} files"
    tail = outcome.tail()
    if outcome.exit_code != 0 and (error := _raised(outcome)):
        return f"{error} (exit code {outcome.exit_code})\n{tail[len(error) - _REASON_CHARACTERS :]}"
    if outcome.exit_code == 0:
        return f"{_ENDED_EARLY}: {tail}" if tail else _ENDED_EARLY
    return f"exit code {outcome.exit_code}: {tail}" if tail else f"exit code {outcome.exit_code}"


def _raised(outcome: SandboxOutcome) -> str:
    """The line of the last traceback that names the exception, or nothing; redacted before it is cut."""
    *frames, last = _FRAME.split(outcome.tail(_TRACEBACK_CHARACTERS))
    lines = last.splitlines() if frames else []
    return next((line for line in lines if line and not line.startswith(" ")), "")[:_ERROR_CHARACTERS]


class CodeType:
    """Creates code evaluators."""

    needs_expected = False
    enforces_timeout = True

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        _read(options)

    def placeholders(self, options: Options) -> frozenset[str]:
        """List the fields that the program's template names, without the output and the sentinel."""
        read = _read(options)
        reserved = {"output"} if read.has_driver else {"output", _SENTINEL}
        return placeholders(read.program) - reserved

    def make(self, name: str, options: Options, environment: ExecutionEnvironment) -> CodeEvaluator:
        """Make one."""
        sandbox = Sandbox(allow_unsandboxed=environment.allow_unsandboxed, cgroup=environment.cgroup)
        return CodeEvaluator(name, _read(options), sandbox)


def _read(options: Options) -> CodeOptions:
    return read_options(CodeOptions, options, of="the code evaluator")


CODE = CodeType()
