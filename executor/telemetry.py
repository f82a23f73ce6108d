"""Metrics and spans of an executor; `docs/reference/telemetry.md` has the names.

Instruments are silent until the process has wired a reader. Gauges read live objects at collection.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from time import monotonic

from opentelemetry.metrics import CallbackOptions, Observation, get_meter
from opentelemetry.trace import Span

from eventlog import payloads as p
from eventlog import tracing
from eventlog.gauges import GaugeSet
from executor.outcome import Closing
from executor.replay import ReplayedAttempt
from executor.sandbox.telemetry import begin as begin_sandbox
from executor.slot_pool import ActiveTask, SlotPool
from taskqueue.executor_registry import executor_name
from taskqueue.tasks import Delivery

SLOW_MS = (1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000)
"""Bucket bounds of a histogram from milliseconds to minutes."""

_meter = get_meter("executor")
_started = _meter.create_counter("eval_worker_started_total", description="Starts")
_stopped = _meter.create_counter("eval_worker_stopped_total", description="Ends")
_heartbeats = _meter.create_counter(
    "eval_worker_heartbeat_total", description="Heartbeats that Redis accepted"
)
_duration = _meter.create_histogram(
    "eval_worker_task_duration_ms",
    description="From acquiring a slot to the closing event",
    explicit_bucket_boundaries_advisory=SLOW_MS,
)


class AttemptStatus(StrEnum):
    """The outcome of an attempt, as a label."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    RETRY = "retry"
    LOST = "lost"


def status_of(closing: Closing | None) -> AttemptStatus:
    """Return the label of a closing event; None: the attempt was fenced or its batch stopped."""
    match closing:
        case p.Completed():
            return AttemptStatus.SUCCESS
        case p.Failed():
            return AttemptStatus.FAILURE
        case p.TimedOut():
            return AttemptStatus.TIMEOUT
        case p.Retrying():
            return AttemptStatus.RETRY
        case None:
            return AttemptStatus.LOST


class StopReason(StrEnum):
    """Why an executor ended, as a label."""

    REQUESTED = "requested"
    CRASHED = "crashed"


_ended: Counter[tuple[str, str]] = Counter()
"""Attempts by worker and status: counted here and read at collection, for there are very many."""


class ExecutorCounters:
    """The counters of one executor."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self._worker = {"worker_id": worker}
        self._statuses = {status: (worker, status.value) for status in AttemptStatus}
        self._modes: dict[str, dict[str, str]] = {}

    def ended(self, task: ActiveTask, closing: Closing | None) -> None:
        """Count an attempt that ended."""
        _ended[self._statuses[status_of(closing)]] += 1
        if task.duration is not None:
            _duration.record(task.duration * 1000, self._mode(task.mode))

    def _mode(self, mode: str) -> dict[str, str]:
        return self._modes.setdefault(mode, {**self._worker, "eval_mode": mode})

    def heartbeat(self) -> None:
        """Count a heartbeat."""
        _heartbeats.add(1, self._worker)

    def started(self) -> None:
        """Count a start; every other counter starts at 0, so that its first increment is a rate."""
        _started.add(1, self._worker)
        _heartbeats.add(0, self._worker)
        for reason in StopReason:
            _stopped.add(0, {**self._worker, "reason": reason.value})
        for key in self._statuses.values():
            _ended[key] += 0
        begin_sandbox()

    def stopped(self, reason: StopReason) -> None:
        """Count an end."""
        _stopped.add(1, {**self._worker, "reason": reason.value})


@dataclass(frozen=True, slots=True, eq=False)
class _RunningExecutor:
    """An executor as its gauges read it."""

    worker: str
    slot_pool: SlotPool
    is_disconnected: Callable[[], bool]

    def slots(self) -> Iterable[Observation]:
        busy = self.slot_pool.busy
        yield Observation(busy, {"worker_id": self.worker, "state": "busy"})
        yield Observation(max(0, self.slot_pool.slots - busy), {"worker_id": self.worker, "state": "free"})

    def oldest(self) -> Iterable[Observation]:
        now = monotonic()
        age = max((now - task.acquired_at for task in self.slot_pool), default=0.0)
        yield Observation(max(0.0, age), {"worker_id": self.worker})

    def overdue(self) -> Iterable[Observation]:
        now = monotonic()
        overdue = max((now - task.acquired_at - task.deadline for task in self.slot_pool), default=0.0)
        yield Observation(max(0.0, overdue), {"worker_id": self.worker})

    def dependencies(self) -> Iterable[Observation]:
        yield Observation(int(not self.is_disconnected()), {"dependency": "redis"})


_gauges: GaugeSet[_RunningExecutor] = GaugeSet("executor")


@contextmanager
def metrics_of(
    counters: ExecutorCounters, slot_pool: SlotPool, *, is_disconnected: Callable[[], bool]
) -> Iterator[None]:
    """Report an executor's metrics while the block lasts."""
    reason = StopReason.CRASHED
    with _gauges.registered(_RunningExecutor(counters.worker, slot_pool, is_disconnected)):
        counters.started()
        try:
            yield
            reason = StopReason.REQUESTED
        finally:
            counters.stopped(reason)


def _processed(_options: CallbackOptions) -> Iterable[Observation]:
    for (worker, status), number in list(_ended.items()):
        yield Observation(number, {"worker_id": worker, "status": status})


_meter.create_observable_counter(
    "eval_worker_tasks_processed_total", [_processed], description="Attempts that ended here"
)
_gauges.gauge("eval_worker_slots", "Slots", _RunningExecutor.slots)
_gauges.gauge("eval_worker_oldest_task_seconds", "Age of the oldest active task", _RunningExecutor.oldest)
_gauges.gauge(
    "eval_worker_oldest_task_overdue_seconds",
    "How far the most overdue active task is past its attempt deadline",
    _RunningExecutor.overdue,
)
_gauges.gauge(
    "eval_dependency_up", "Whether the last request to the server succeeded", _RunningExecutor.dependencies
)


def attempt_span(
    delivery: Delivery, replayed: ReplayedAttempt, *, worker: str, now: datetime
) -> AbstractContextManager[Span]:
    """Open the span of a traced attempt, after those of its delivery."""
    task = delivery.task
    if delivery.deliveries > 1:
        tracing.finished(
            "eval.queue.claim_stalled",
            replayed.traceparent,
            start=now,
            end=now,
            task_id=task.name,
            from_worker=executor_name(delivery.claimed_from),
            to_worker=worker,
        )
    tracing.finished(
        "eval.queue.consume",
        replayed.traceparent,
        start=min(replayed.opened_at or now, now),
        end=now,
        worker_id=worker,
        batch_id=delivery.batch_id,
        task_id=task.name,
    )
    return tracing.span(
        "eval.worker.process_task",
        replayed.traceparent,
        evaluation_id=task.evaluation_id,
        worker_id=worker,
        task_id=task.name,
        test_case_id=replayed.opening.case.id,
    )
