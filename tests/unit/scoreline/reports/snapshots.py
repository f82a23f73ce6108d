"""Snapshots of batches for tests of their reports."""

from datetime import timedelta
from typing import Any

from projections.folds.progress import Progress
from projections.queries.batches import BatchSnapshot
from scoreline.reports.batch_view import BatchView
from scoreline.reports.fleet_status import FleetStatus
from taskqueue.executor_registry import ExecutorInstance
from tests.batches import changed
from tests.builders import START

NOW = START + timedelta(minutes=10)


RUNNING = BatchSnapshot(
    "b", "submitted", "name", "default", "", "running", "", None, START, None, None, NOW,
    progress=Progress(total=100),
)  # fmt: skip


FLEET = FleetStatus((ExecutorInstance("i-1", "one", slots=4, busy=2),))


def make_snapshot(**changes: Any) -> BatchSnapshot:
    return changed(RUNNING, **changes)


def abandoned(**changes: Any) -> BatchView:
    """Return the view of a local run's batch that no process serves."""
    return BatchView(make_snapshot(**{"run_id": "r", **changes}), fleet=FleetStatus(), leaderless=True)
