"""Jobs, limits and outcomes of the sandbox."""

import pytest
from pydantic import ValidationError

from executor.sandbox.job import SandboxJob, SandboxLimits, SandboxOutcome


@pytest.mark.parametrize(
    ("amount", "is_valid"), [(1, True), (1_000_000, True), (0, False), (1_000_001, False)]
)
def test_limits_are_positive_and_at_most_a_million(amount: int, is_valid: bool) -> None:
    """No limit can be switched off by 0 or by a number that no host has."""
    if is_valid:
        assert SandboxLimits(output_kb=amount).output_bytes == amount * 1024
    else:
        with pytest.raises(ValidationError):
            SandboxLimits(output_kb=amount)


def test_a_program_inherits_its_channel_and_nothing_else() -> None:
    """Descriptor 0 is one, too."""
    assert SandboxJob(("true",), 1).inherited == []
    assert SandboxJob(("true",), 1, channel=0).inherited == [0]


def test_the_tail_is_the_end_of_standard_error() -> None:
    """Bytes that are no text are replaced, and blank lines around it are dropped."""
    outcome = SandboxOutcome(1, b"out", b"\n" + b"x" * 600 + b" last \xff\n", None, 0.1)
    assert outcome.tail().endswith("x last \N{REPLACEMENT CHARACTER}")
    assert len(outcome.tail(10)) <= 11
