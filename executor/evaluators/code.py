r"""Code that judges itself: the answer is put into a program, and passes where that ends with exit code 0.

    evaluators:
      - type: code
        program: "{prompt}{output}\n{test}\ncheck({entry_point})\n"
        timeout: 3

The program runs in the sandbox, with nothing on its standard input. An answer that hangs, crashes or floods
has failed; that there is no sandbox is no fault of the answer.
"""

from typing import Annotated

from pydantic import Field

from eventlog import payloads as p
from executor.contract import Judged, Permanent, Surroundings
from executor.options import OptionModel, read_options
from executor.sandbox.job import Job, Limits, Outcome
from executor.sandbox.sandbox import Sandbox
from taskqueue.spec import Options
from taskqueue.template import UnknownField, placeholders, render

_PROGRAM = "program.py"


class CodeOptions(OptionModel):
    """Which program, how long, and by whom it is read."""

    program: Annotated[str, Field(min_length=1)]
    timeout: Annotated[float, Field(gt=0, le=3_600)] = 3.0
    interpreter: Annotated[tuple[str, ...], Field(min_length=1)] = ("python3", "-I", "-B")
    limits: Limits = Limits()


class Code:
    """Judges by running."""

    def __init__(self, name: str, options: CodeOptions, sandbox: Sandbox) -> None:
        self._name = name
        self._options = options
        self._sandbox = sandbox

    async def judge(self, judged: Judged) -> p.Score:
        """Run the program once."""
        outcome = await self._sandbox.run(self._job(judged))
        passed = outcome.exit_code == 0 and outcome.killed_by is None
        reason = "" if passed else _why(outcome, self._options)
        return p.Score(evaluator=self._name, score=float(passed), passed=passed, reason=reason)

    async def aclose(self) -> None:
        """Leave nothing behind: each run has taken all of its own along."""

    def _job(self, judged: Judged) -> Job:
        options = self._options
        try:
            program = render(options.program, {**judged.fields, "output": judged.output})
        except UnknownField as error:
            raise Permanent(
                "template", f"the program wants {error.name!r}, and the case has none"
            ) from None
        return Job(
            (*options.interpreter, _PROGRAM),
            seconds=options.timeout,
            texts={_PROGRAM: program.encode(errors="replace")},
            limits=options.limits,
        )


def _why(outcome: Outcome, options: CodeOptions) -> str:
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
    tail = outcome.tail()
    return f"exit code {outcome.exit_code}: {tail}" if tail else f"exit code {outcome.exit_code}"


class CodeType:
    """How such evaluators are made."""

    needs_expected = False
    limits_itself = True

    def check(self, options: Options) -> None:
        """Refuse options that make no sense."""
        _read(options)

    def placeholders(self, options: Options) -> frozenset[str]:
        """Name the fields that the program wants, besides the output."""
        return placeholders(_read(options).program) - {"output"}

    def make(self, name: str, options: Options, surroundings: Surroundings) -> Code:
        """Make one."""
        return Code(name, _read(options), Sandbox(allow_unsandboxed=surroundings.allow_unsandboxed))


def _read(options: Options) -> CodeOptions:
    return read_options(CodeOptions, options, of="the code evaluator")


CODE = CodeType()
