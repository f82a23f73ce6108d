"""What an executor tells of itself; `docs/reference/telemetry.md` has the names.

Instruments are silent until the process has wired something behind them. Gauges read, when somebody asks,
what is there anyhow.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from time import monotonic

from opentelemetry.metrics import CallbackOptions, Observation, get_meter

from eventlog import payloads as p
from executor.faults import Closing
from executor.sandbox.telemetry import begin as begin_sandbox
from executor.slot_pool import ActiveTask, SlotPool

SLOW_MS = (1, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000)
"""Bounds of a histogram for what may take milliseconds or minutes."""

_meter = get_meter("executor")
_started = _meter.create_counter("eval_worker_started_total", description="Starts")
_stopped = _meter.create_counter("eval_worker_stopped_total", description="Ends")
_heartbeats = _meter.create_counter("eval_worker_heartbeat_total", description="Heartbeats that Redis took")
_duration = _meter.create_histogram(
    "eval_worker_task_duration_ms",
    description="From taking a task to its closing event",
    explicit_bucket_boundaries_advisory=SLOW_MS,
)


class AttemptStatus(StrEnum):
    """What became of an attempt."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"
    RETRY = "retry"
    LOST = "lost"


def status_of(closing: Closing | None) -> AttemptStatus:
    """Name what an attempt came to; None is one that ended without us."""
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


_ended: Counter[tuple[str, str]] = Counter()
"""Attempts by worker and status: counted here and read when somebody asks, for there are very many."""


class ExecutorCounters:
    """What one worker has done."""

    def __init__(self, worker: str) -> None:
        self.worker = worker
        self._worker = {"worker_id": worker}
        self._statuses = {status: (worker, status.value) for status in AttemptStatus}
        self._modes: dict[str, dict[str, str]] = {}

    def ended(self, hand: ActiveTask, closing: Closing | None) -> None:
        """Count an attempt that came to an end."""
        _ended[self._statuses[status_of(closing)]] += 1
        if hand.took is not None:
            _duration.record(hand.took * 1000, self._mode(hand.mode))

    def _mode(self, mode: str) -> dict[str, str]:
        return self._modes.setdefault(mode, {**self._worker, "eval_mode": mode})

    def beat(self) -> None:
        """Count a heartbeat."""
        _heartbeats.add(1, self._worker)

    def begin(self) -> None:
        """Count a start; what has not happened yet begins at nothing, so that its first time is seen."""
        _started.add(1, self._worker)
        _heartbeats.add(0, self._worker)
        for reason in ("told", "broken"):
            _stopped.add(0, {**self._worker, "reason": reason})
        for key in self._statuses.values():
            _ended[key] += 0
        begin_sandbox()

    def stop(self, reason: str) -> None:
        """Count an end."""
        _stopped.add(1, {**self._worker, "reason": reason})


@dataclass(frozen=True, slots=True, eq=False)
class _AtWork:
    """An executor as gauges see it."""

    worker: str
    hands: SlotPool
    is_cut_off: Callable[[], bool]


_at_work: set[_AtWork] = set()


@contextmanager
def at_work(
    counters: ExecutorCounters, hands: SlotPool, *, is_cut_off: Callable[[], bool]
) -> Iterator[None]:
    """Tell of an executor until the block is left."""
    seen = _AtWork(counters.worker, hands, is_cut_off)
    _at_work.add(seen)
    counters.begin()
    reason = "broken"
    try:
        yield
        reason = "told"
    finally:
        counters.stop(reason)
        _at_work.discard(seen)


def _processed(_options: CallbackOptions) -> Iterable[Observation]:
    for (worker, status), number in list(_ended.items()):
        yield Observation(number, {"worker_id": worker, "status": status})


def _slots(_options: CallbackOptions) -> Iterable[Observation]:
    for each in list(_at_work):
        busy = each.hands.busy
        yield Observation(busy, {"worker_id": each.worker, "state": "busy"})
        yield Observation(max(0, each.hands.slots - busy), {"worker_id": each.worker, "state": "free"})


def _oldest(_options: CallbackOptions) -> Iterable[Observation]:
    now = monotonic()
    for each in list(_at_work):
        age = max((now - hand.since for hand in each.hands), default=0.0)
        yield Observation(max(0.0, age), {"worker_id": each.worker})


def _overdue(_options: CallbackOptions) -> Iterable[Observation]:
    now = monotonic()
    for each in list(_at_work):
        late = max((now - hand.since - hand.limit for hand in each.hands), default=0.0)
        yield Observation(max(0.0, late), {"worker_id": each.worker})


def _dependencies(_options: CallbackOptions) -> Iterable[Observation]:
    for each in list(_at_work):
        yield Observation(int(not each.is_cut_off()), {"dependency": "redis"})


_meter.create_observable_counter(
    "eval_worker_tasks_processed_total", [_processed], description="Attempts that came to an end here"
)
_meter.create_observable_gauge("eval_worker_slots", [_slots], description="Slots")
_meter.create_observable_gauge(
    "eval_worker_oldest_task_seconds", [_oldest], description="Age of what has been in hand longest"
)
_meter.create_observable_gauge(
    "eval_worker_oldest_task_overdue_seconds",
    [_overdue],
    description="By how much something in hand is past its own time-out, at most",
)
_meter.create_observable_gauge(
    "eval_dependency_up", [_dependencies], description="Whether the process got through to it last time"
)
