"""The thresholds of alerts: for Prometheus and for `batch status --alert`. Pure."""

from dataclasses import dataclass, fields, replace
from datetime import timedelta
from typing import Any, Self

from taskqueue.executor_registry import INSTANCE_TTL

SHORTEST_WINDOW = timedelta(seconds=5)
"""A rate needs at least two samples."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Every threshold; fields that end in `window` are the times over which values are measured."""

    # Executors
    min_workers: int = 1
    worker_silence: timedelta = INSTANCE_TTL
    """An executor without a heartbeat for this long is dead, and its tasks are reclaimed."""
    missed_beats: timedelta = INSTANCE_TTL / 2
    """An executor that disappears sooner after its last heartbeat has deregistered."""
    task_overdue: timedelta = timedelta(minutes=1)
    """How far past its time-out a task may be before its executor counts as stalled."""
    beat_window: timedelta = timedelta(minutes=1)
    memory_window: timedelta = timedelta(hours=1)
    """How long a process that disappeared is remembered."""

    # Work
    backlog_drain: timedelta = timedelta(hours=1)
    """The queue must drain within this at the current rate."""
    pace_window: timedelta = timedelta(minutes=10)
    no_progress: timedelta = timedelta(minutes=15)
    stuck_beyond_timeout: timedelta = timedelta(minutes=15)
    dead_letters: int = 10
    dead_letters_window: timedelta = timedelta(hours=1)
    failure_rate: float = 0.1
    failure_sample: int = 20
    """No failure rate is measured over fewer ended evaluations."""
    failure_window: timedelta = timedelta(minutes=10)
    stalled_claims_per_second: float = 0.1
    taken_over_window: timedelta = timedelta(minutes=5)
    budget_share: float = 0.9
    completed_window: timedelta = timedelta(minutes=5)

    # Providers
    rate_limit_p95: timedelta = timedelta(seconds=5)
    rate_limit_wait: timedelta = timedelta(seconds=30)
    """How long a lane may grant no permit, as the command line measures it."""
    llm_errors_per_second: float = 0.1
    llm_error_share: float = 0.05
    provider_window: timedelta = timedelta(minutes=5)

    # Storage
    storage_lag: timedelta = timedelta(minutes=1)
    gaps: int = 10
    gap_age: timedelta = timedelta(minutes=1)
    gap_window: timedelta = timedelta(minutes=15)
    quarantine_window: timedelta = timedelta(hours=1)

    # Scraping
    scrape_timeout: timedelta = timedelta(seconds=10)

    def accelerated(self, factor: float, *, scrape_timeout: timedelta) -> Self:
        """Divide every time by a factor, so that a test takes seconds instead of minutes."""
        spans: dict[str, Any] = {
            field.name: _shortened(field.name, getattr(self, field.name), factor)
            for field in fields(self)
            if isinstance(getattr(self, field.name), timedelta)
        }
        return replace(self, **spans | {"scrape_timeout": scrape_timeout})


def _shortened(name: str, span: timedelta, factor: float) -> timedelta:
    shorter = span / factor
    return max(shorter, SHORTEST_WINDOW) if name.endswith("window") else shorter
