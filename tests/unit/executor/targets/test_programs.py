"""Programs of targets: command lines, environment, and the conversion of outcomes."""

from dataclasses import replace
from typing import Any, cast

import pytest

from eventlog import payloads as p
from executor.contract import Permanent, Transient
from executor.options import read_options
from executor.sandbox.job import SandboxLimits, SandboxOutcome
from executor.sandbox.reports import ReportListener, ResultReport
from executor.targets.programs import MAX_ARGUMENT, ProgramOptions, answered, arguments, words

OUTCOME = SandboxOutcome(0, b"4\n\n", b"a warning", None, 0.25)


class Reports:
    """A listener that has received a result, or none."""

    def __init__(self, result: ResultReport | None = None) -> None:
        self.result = result


NO_REPORTS = cast("ReportListener", Reports())


@pytest.mark.parametrize(
    ("command", "error"),
    [
        ("solve 'half", "can't be taken apart: No closing quotation"),
        ("", "names no program"),
        ([""], "names no program"),
        ("{input} --now", "the program itself can't be a placeholder"),
    ],
)
def test_a_command_without_a_fixed_program_is_refused(command, error):
    """Data must never choose what is run."""
    with pytest.raises(ValueError, match=error):
        words(command)


def test_a_command_is_split_before_data_are_filled_in():
    """Quotes and blanks of data are part of one argument."""
    parts = words("solve --of '{input}' {n}")
    assert arguments(parts, {"input": "a 'b; c", "n": 1}) == ("solve", "--of", "a 'b; c", "1")


@pytest.mark.parametrize(
    ("value", "kind", "error"),
    [
        ("a\0b", "argument", "an argument holds a NUL, which none can: use stdin"),
        ("é" * (MAX_ARGUMENT // 2 + 1), "argument", "an argument has more than 131,071 bytes: use stdin"),
        (None, "template", "the program is to be given 'x', and the case has none"),
    ],
)
def test_data_that_can_not_be_an_argument_are_a_permanent_fault(value, kind, error):
    """The limit counts bytes, and an argument of exactly that size is accepted."""
    with pytest.raises(Permanent) as caught:
        arguments(("solve", "{x}"), {} if value is None else {"x": value})
    assert (caught.value.kind, caught.value.message) == (kind, error)
    assert arguments(("{x}",), {"x": "y" * MAX_ARGUMENT}) == ("y" * MAX_ARGUMENT,)


@pytest.mark.parametrize(
    ("env", "error"),
    [
        ({"KEY": "$OPENAI_API_KEY"}, "KEY names a variable of the executor"),
        ({"KEY": "x${HOME}"}, "KEY names a variable of the executor"),
        ({"SCORELINE_REPORT": "/tmp/s"}, "SCORELINE_REPORT is where the program finds its report socket"),
    ],
)
def test_a_program_s_environment_has_plain_values_only(env, error):
    """No program gets a variable of its executor; a price in dollars is no variable."""
    with pytest.raises(ValueError, match=error):
        read_options(ProgramOptions, {"env": env}, of="the target")
    assert ProgramOptions(env={"PRICE": "5 $"}).env == {"PRICE": "5 $"}


@pytest.mark.parametrize(
    ("killed_by", "fault", "kind", "message"),
    [
        ("time", Transient, "timeout", "the program was stopped after 0.2 s"),
        ("output", Permanent, "output_limit", "the program wrote more than 1 kB"),
        ("memory", Permanent, "memory_limit", "the program took more than 2 MB of memory"),
        ("processes", Permanent, "process_limit", "the program started more than 3 processes"),
        ("disk", Permanent, "disk_limit", "the program made more than 4 files"),
    ],
)
def test_each_limit_has_a_fault_of_its_own(killed_by, fault, kind, message):
    """With the limit that was exceeded; only time is worth a retry."""
    limits = SandboxLimits(output_kb=1, memory_mb=2, processes=3, files=4)
    with pytest.raises(fault) as caught:
        answered(replace(OUTCOME, killed_by=killed_by), NO_REPORTS, ProgramOptions(limits=limits))
    assert (caught.value.kind, caught.value.message) == (kind, message)


@pytest.mark.parametrize(
    ("outcome", "message"),
    [
        ({"exit_code": 3}, "the program ended with 3: a warning"),
        ({"exit_code": 3, "stderr": b" \n"}, "the program ended with 3"),
        ({"exit_code": 139, "killed_by": "signal"}, "the program ended with 139: a warning"),
    ],
)
def test_an_exit_code_that_is_not_declared_is_a_fault(outcome: dict[str, Any], message):
    """With the end of standard error, if there is any."""
    with pytest.raises(Permanent) as caught:
        answered(replace(OUTCOME, **outcome), NO_REPORTS, ProgramOptions())
    assert (caught.value.kind, caught.value.message) == ("exit_code", message)


def test_standard_output_is_the_answer_without_its_last_line_end():
    """A declared exit code other than 0 is part of the reply."""
    reply = answered(replace(OUTCOME, exit_code=3), NO_REPORTS, ProgramOptions(ok_exit_codes=[0, 3]))
    assert (reply.answer.output, reply.answer.latency_ms, reply.exit_code) == ("4\n", 250.0, 3)


def test_a_reported_result_replaces_standard_output():
    """With its own tokens and cost."""
    result = ResultReport("result", "42", usage=p.TokenUsage(9, 1), cost_usd=0.5)
    reply = answered(OUTCOME, cast("ReportListener", Reports(result)), ProgramOptions())
    assert (reply.answer.output, reply.answer.cost_usd, reply.exit_code) == ("42", 0.5, 0)
    assert reply.answer.usage == p.TokenUsage(9, 1)
