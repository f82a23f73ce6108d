"""The gauges of a coordinator, read at collection; those of batches are reported only by the leader."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic

from opentelemetry.metrics import Observation

from coordinator.telemetry import status_of
from eventlog.gauges import DependencyHealth, GaugeSet
from projections.queries.monitoring import ActiveBatch, FinishedBatch
from taskqueue.tasks import QueueCounts

OTHER = "other"
"""The label of batches beyond the number that have series of their own."""
STALE_AFTER = 30.0
"""Seconds after which an overview is no longer reported."""


@dataclass(frozen=True, slots=True)
class FleetOverview:
    """Counters of all batches, the queue and the fleet."""

    batches: tuple[ActiveBatch, ...] = ()
    queued: Mapping[str, QueueCounts] = field(default_factory=dict)
    """Queue counts by batch, and `other`."""
    workers: int = 0
    stuck: int = 0
    provider_batches: int = 0
    finished: tuple[FinishedBatch, ...] = ()
    """Recently finished batches."""


class CoordinatorMetrics:
    """The values that one coordinator has read last."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self.is_leading = False
        self.dependencies = DependencyHealth()
        self._seen: tuple[FleetOverview, float] | None = None

    def show(self, overview: FleetOverview) -> None:
        """Report a new overview."""
        self._seen = overview, self._clock()

    @property
    def overview(self) -> FleetOverview | None:
        """The overview to report: None where another coordinator may be leader, or it is too old."""
        if not self.is_leading or self._seen is None:
            return None
        overview, at = self._seen
        return overview if self._clock() - at < STALE_AFTER else None

    @contextmanager
    def leading(self) -> Iterator[None]:
        """Report as leader while the block lasts; the overview is dropped at its end."""
        self.is_leading = True
        try:
            yield
        finally:
            self.is_leading, self._seen = False, None


GAUGES: GaugeSet[CoordinatorMetrics] = GaugeSet("scoreline.coordinator")

Read = Callable[[FleetOverview], Iterable[Observation]]
ReadBatch = Callable[[ActiveBatch], float | None]


def _show_overview(name: str, description: str, read: Read) -> None:
    GAUGES.gauge(name, description, lambda source: read(source.overview) if source.overview else ())


def _show_batches(name: str, description: str, read: ReadBatch, *, adds_up: bool) -> None:
    def observe(overview: FleetOverview) -> Iterable[Observation]:
        for batch in overview.batches:
            value = read(batch) if batch.batch_id or adds_up else None
            if value is not None:
                yield Observation(value, {"batch_id": batch.batch_id or OTHER})

    _show_overview(name, description, observe)


def _show_queue(name: str, description: str, read: Callable[[QueueCounts], int]) -> None:
    def observe(overview: FleetOverview) -> Iterable[Observation]:
        return [Observation(read(each), {"batch_id": key}) for key, each in overview.queued.items()]

    _show_overview(name, description, observe)


def _states(overview: FleetOverview) -> Iterable[Observation]:
    yield Observation(sum(batch.running for batch in overview.batches), {"state": "running"})
    yield Observation(sum(batch.paused for batch in overview.batches), {"state": "paused"})


def _evaluations(overview: FleetOverview) -> Iterable[Observation]:
    for batch in overview.batches:
        for state in ("pending", "completed", "failed", "timed_out", "cancelled"):
            labels = {"batch_id": batch.batch_id or OTHER, "state": state}
            yield Observation(getattr(batch.progress, state), labels)


def _finished(overview: FleetOverview) -> Iterable[Observation]:
    for batch in overview.finished:
        status = status_of(batch.state, completed=batch.completed, total=batch.total)
        yield Observation(batch.finished_at, {"batch_id": batch.batch_id, "status": status})


GAUGES.value("eval_coordinator_leading", "1 for the leader", lambda source: int(source.is_leading))
GAUGES.gauge(
    "eval_dependency_up",
    "1 if the last request succeeded",
    lambda source: source.dependencies.observations(),
)
_show_overview("eval_workers_present", "Live executors", lambda o: [Observation(o.workers)])
_show_overview("eval_active_batches", "Unfinished batches", _states)
_show_overview("eval_batch_evaluations", "Evaluations of a batch by state", _evaluations)
_show_overview(
    "eval_stuck_evaluations", "Published evaluations without progress", lambda o: [Observation(o.stuck)]
)
_show_overview("eval_batch_api_open", "Open provider batches", lambda o: [Observation(o.provider_batches)])
_show_overview(
    "eval_batch_finished_timestamp_seconds", "When a batch of the last ten minutes finished", _finished
)
_show_batches(
    "eval_batch_passed",
    "Good verdicts",
    lambda b: b.progress.passed if b.is_scored else None,
    adds_up=True,
)
_show_batches("eval_batch_cost_usd", "Cost so far", lambda b: float(b.progress.cost_usd), adds_up=True)
_show_batches(
    "eval_batch_started_timestamp_seconds",
    "When the batch was accepted",
    lambda b: b.accepted_at,
    adds_up=False,
)
_show_batches(
    "eval_batch_idle_seconds",
    "Time since the last evaluation ended",
    lambda b: b.idle_seconds,
    adds_up=False,
)
_show_batches(
    "eval_batch_budget_spent_ratio",
    "Spent share of the budget, the larger of cost and tokens",
    lambda b: b.budget_spent,
    adds_up=False,
)
_show_batches("eval_queue_dlq_size", "Dead letters", lambda b: b.progress.dead_letters, adds_up=True)
_show_queue("eval_queue_pending_tasks", "Tasks ready to be consumed", lambda c: c.ready)
_show_queue("eval_queue_owned_tasks", "Tasks that executors own", lambda c: c.owned)
