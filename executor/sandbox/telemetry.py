"""Metrics of sandboxes; `docs/reference/telemetry.md` lists the names."""

from typing import get_args

from opentelemetry.metrics import get_meter

from executor.sandbox.job import KilledBy, SandboxOutcome

_meter = get_meter("executor.sandbox")
_runs = _meter.create_counter("eval_sandbox_runs_total", description="Programs run in a sandbox")
_kills = _meter.create_counter("eval_sandbox_kills_total", description="Programs ended by a limit")


def begin() -> None:
    """Initialise every counter at 0."""
    _runs.add(0)
    for reason in get_args(KilledBy):
        _kills.add(0, {"reason": reason})


def counted(outcome: SandboxOutcome) -> SandboxOutcome:
    """Count a run, and how it ended."""
    _runs.add(1)
    if outcome.killed_by:
        _kills.add(1, {"reason": outcome.killed_by})
    return outcome
