"""Code shared by targets that run programs: input, command line, and conversion of the outcome.

The command is split before templates are rendered, so data can never become an argument of its own.
"""

import re
import shlex
from dataclasses import replace
from typing import Annotated

from pydantic import Field, StringConstraints, field_validator

from domain.template import UnknownField, placeholders, render
from executor.contract import Fields, Permanent, TargetReply, TargetRequest, Transient
from executor.options import OptionModel
from executor.sandbox.bubblewrap_options import REPORT_VARIABLE
from executor.sandbox.job import SandboxLimits, SandboxOutcome
from executor.sandbox.reports import ReportListener
from executor.targets.answers import reply

MAX_ARGUMENT = 128 * 1024 - 1
"""Bytes that the kernel takes as one argument."""
_FROM_THE_HOST = re.compile(r"\$(\w+|\{\w+\})")

Words = Annotated[list[str], Field(min_length=1, max_length=1_000)]
Variable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,199}$")]
Value = Annotated[str, StringConstraints(max_length=10_000, pattern=r"^[^\x00]*$")]
ExitCode = Annotated[int, Field(ge=0, le=255)]


class ProgramOptions(OptionModel):
    """Options shared by all programs."""

    stdin: str = "{prompt}"
    env: dict[Variable, Value] = Field(default_factory=dict)
    limits: SandboxLimits = SandboxLimits()
    ok_exit_codes: list[ExitCode] = Field(default=[0], min_length=1)

    @field_validator("env")
    @classmethod
    def _holds_plain_values(cls, env: dict[str, str]) -> dict[str, str]:
        for name, value in env.items():
            if _FROM_THE_HOST.search(value):
                raise ValueError(
                    f"{name} names a variable of the executor, and no program gets to see those"
                )
            if name == REPORT_VARIABLE:
                raise ValueError(f"{name} is where the program finds its report socket")
        return env


def words(command: str | list[str]) -> tuple[str, ...]:
    """Split a command as a shell would; raises `ValueError` if it is invalid."""
    try:
        parts = shlex.split(command) if isinstance(command, str) else command
    except ValueError as error:
        raise ValueError(f"can't be taken apart: {error}") from None
    if not parts or not parts[0]:
        raise ValueError("names no program")
    if placeholders(parts[0]):
        raise ValueError("the program itself can't be a placeholder: data would choose what is run")
    return tuple(parts)


def fields_of(request: TargetRequest) -> Fields:
    """The names available to a program's templates: the case's fields, and the rendered prompt."""
    return {**request.fields, "prompt": request.prompt}


def filled_in(template: str, fields: Fields) -> str:
    """Fill a template in; raises `Permanent`."""
    try:
        return render(template, fields)
    except UnknownField as error:
        raise Permanent(
            "template", f"the program is to be given {error.name!r}, and the case has none"
        ) from None


def arguments(parts: tuple[str, ...], fields: Fields) -> tuple[str, ...]:
    """Fill every argument in, and leave it one argument; raises `Permanent` for what can't be one."""
    filled = tuple(filled_in(part, fields) for part in parts)
    for argument in filled:
        if "\0" in argument:
            raise Permanent("argument", "an argument holds a NUL, which none can: use stdin")
        if len(argument.encode(errors="replace")) > MAX_ARGUMENT:
            raise Permanent("argument", f"an argument has more than {MAX_ARGUMENT:,} bytes: use stdin")
    return filled


def answered(outcome: SandboxOutcome, reports: ReportListener, options: ProgramOptions) -> TargetReply:
    """Convert the outcome of a program to a reply, or raise its fault."""
    limits = options.limits
    match outcome.killed_by:
        case "time":
            raise Transient("timeout", f"the program was stopped after {outcome.seconds:.1f} s")
        case "output":
            raise Permanent("output_limit", f"the program wrote more than {limits.output_kb} kB")
        case "memory":
            raise Permanent("memory_limit", f"the program took more than {limits.memory_mb} MB of memory")
        case "processes":
            raise Permanent("process_limit", f"the program started more than {limits.processes} processes")
        case "disk":
            raise Permanent("disk_limit", f"the program made more than {limits.files} files")
    if outcome.exit_code not in options.ok_exit_codes:
        error_output = f": {outcome.tail()}" if outcome.tail() else ""
        raise Permanent("exit_code", f"the program ended with {outcome.exit_code}{error_output}")
    return replace(_spoken(outcome, reports), exit_code=outcome.exit_code)


def _spoken(outcome: SandboxOutcome, reports: ReportListener) -> TargetReply:
    latency_ms = outcome.seconds * 1_000
    if result := reports.result:
        spoken = reply(result.output, cost_usd=result.cost_usd, latency_ms=latency_ms)
        return TargetReply(replace(spoken.answer, usage=result.usage))
    return reply(outcome.stdout.decode(errors="replace").removesuffix("\n"), latency_ms=latency_ms)
