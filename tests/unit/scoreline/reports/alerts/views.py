"""Successive views of a batch."""

from datetime import timedelta
from typing import Any

from domain.batch_spec import BatchSpec, TargetSpec, pack
from projections.folds.progress import Progress
from projections.queries.batches import BatchSnapshot
from scoreline.observability.thresholds import Thresholds
from scoreline.reports.alerts.alert import evaluate_alerts
from scoreline.reports.alerts.measurement import AlertInputs
from scoreline.reports.alerts.window import AlertWindow
from scoreline.reports.batch_view import BatchView
from scoreline.reports.fleet_status import FleetStatus
from taskqueue.executor_registry import ExecutorInstance
from tests.batches import changed
from tests.builders import START

SPEC = pack(BatchSpec("b", (TargetSpec("simulated", "t"),), timeout=60.0)).decode()


RUNNING = BatchSnapshot(
    "b", "submitted", "b", "default", "", "running", "", SPEC, START, None, None, START,
    progress=Progress(total=1000),
)  # fmt: skip


THRESHOLDS = Thresholds()


def at(seconds: float, *, beats: dict[str, float] | None = None, **changes: Any) -> BatchView:
    """Return the view of a batch this long after its start; `beats` are the heartbeats by executor."""
    now = START + timedelta(seconds=seconds)
    known = {"worker-1": seconds} if beats is None else beats
    fleet = FleetStatus(
        tuple(ExecutorInstance(f"i-{name}", name) for name in known), "", by_instance_id(known)
    )
    own = {key: changes.pop(key) for key in list(changes) if key in BatchView.__dataclass_fields__}
    return BatchView(**{"snapshot": changed(RUNNING, now=now, **changes), "fleet": fleet, **own})


def by_instance_id(known: dict[str, float]) -> dict[str, float]:
    return {f"i-{name}": beat for name, beat in known.items()}


def firing(*views: BatchView) -> list[str]:
    """Return the names of the alerts that fire for the last of some views."""
    window = AlertWindow.first(views[0])
    for view in views[1:]:
        window = window.after(view, THRESHOLDS)
    return [alert.name for alert in evaluate_alerts(AlertInputs(views[-1], window, THRESHOLDS))]
