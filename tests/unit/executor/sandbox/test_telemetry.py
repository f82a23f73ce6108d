"""Metrics of sandboxes."""

from executor.sandbox.job import SandboxOutcome
from executor.sandbox.telemetry import counted
from tests.telemetry import measuring


def test_programs_and_kills_are_counted():
    """By the limit that ended them."""
    with measuring() as measured:
        counted(SandboxOutcome(0, b"", b"", None, 0.1))
        counted(SandboxOutcome(137, b"", b"", "memory", 0.1))
    assert measured["eval_sandbox_runs_total"] == 2
    assert measured["eval_sandbox_kills_total", "memory"] == 1
