"""When something is worth an alert: for Prometheus and for `batch status --alert`. Pure."""

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Self

from taskqueue.executor_registry import INSTANCE_TTL

SHORTEST_WINDOW = timedelta(seconds=5)
"""A rate needs some samples, however much of a hurry there is."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Every number, once; fields that end in `window` say over how long something is measured."""

    # Executors
    min_workers: int = 1
    worker_silence: timedelta = INSTANCE_TTL
    """After so long without a heartbeat an executor is given up, and its work given to others."""
    missed_beats: timedelta = INSTANCE_TTL / 2
    """An executor that leaves without having been silent for so long has said goodbye."""
    task_overdue: timedelta = timedelta(minutes=1)
    """How far past its own time-out a task may be before whoever holds it is taken to hang."""
    beat_window: timedelta = timedelta(minutes=1)
    memory_window: timedelta = timedelta(hours=1)
    """How long what is gone is remembered."""

    # Work
    backlog_drain: timedelta = timedelta(hours=1)
    """The queue must drain within this, at the present rate."""
    pace_window: timedelta = timedelta(minutes=10)
    no_progress: timedelta = timedelta(minutes=15)
    stuck_beyond_timeout: timedelta = timedelta(minutes=15)
    dead_letters: int = 10
    dead_letters_window: timedelta = timedelta(hours=1)
    failure_rate: float = 0.1
    failure_sample: int = 20
    """Of fewer ends no share is taken."""
    failure_window: timedelta = timedelta(minutes=10)
    stalled_claims_per_second: float = 0.1
    taken_over_window: timedelta = timedelta(minutes=5)
    budget_share: float = 0.9
    completed_window: timedelta = timedelta(minutes=5)

    # Providers
    rate_limit_p95: timedelta = timedelta(seconds=5)
    rate_limit_wait: timedelta = timedelta(seconds=30)
    """How long one lane may have nothing, as seen from the command line."""
    llm_errors_per_second: float = 0.1
    llm_error_share: float = 0.05
    provider_window: timedelta = timedelta(minutes=5)

    # Storage
    storage_lag: timedelta = timedelta(minutes=1)
    gaps: int = 10
    gap_age: timedelta = timedelta(minutes=1)
    gap_window: timedelta = timedelta(minutes=15)
    quarantine_window: timedelta = timedelta(hours=1)

    # How Prometheus asks
    scrape_timeout: timedelta = timedelta(seconds=10)

    def hurried(self, factor: float, *, scrape_timeout: timedelta) -> Self:
        """Divide every span of time, to see in seconds what takes minutes."""
        spans: dict[str, Any] = {
            field.name: _shortened(field.name, getattr(self, field.name), factor)
            for field in fields(self)
            if isinstance(getattr(self, field.name), timedelta)
        }
        return replace(self, **spans | {"scrape_timeout": scrape_timeout})


def _shortened(name: str, span: timedelta, factor: float) -> timedelta:
    shorter = span / factor
    return max(shorter, SHORTEST_WINDOW) if name.endswith("window") else shorter
