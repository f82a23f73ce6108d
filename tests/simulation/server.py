"""The simulated Redis: a log in memory, pending wake-ups, tasks, batch registry and heartbeats."""

from collections.abc import Callable, Iterable
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from eventlog.keys import shard_of
from eventlog.memory import MemoryEventLog, _Stream
from taskqueue.memory import MemoryBatchRegistry, MemoryExecutorRegistry, MemoryTaskQueue

LIFETIME = timedelta(seconds=3)
"""How long an executor counts as alive after its last heartbeat."""


@dataclass(slots=True)
class Delivery:
    """A pending wake-up of a worker."""

    evaluation_id: str
    worker: str
    since: float


@dataclass(slots=True)
class Memory:
    """What Redis would have if it lost all writes from now on."""

    streams: dict[str, _Stream]
    unread: list[str]
    others: list[dict[str, Any]]
    """The content of queue, batch registry and executor registry."""
    losses: int
    """The half of its epochs that is lost with the data."""


@dataclass(slots=True)
class SimulatedRedis:
    """Everything that is lost with Redis."""

    log: MemoryEventLog
    clock: Callable[[], float]
    lost_times: list[float] = field(default_factory=list)
    deliveries: dict[int, Delivery] = field(default_factory=dict)
    _delivered: int = 0
    queue: MemoryTaskQueue = field(init=False)
    batch_registry: MemoryBatchRegistry = field(init=False)
    executor_registry: MemoryExecutorRegistry = field(init=False)

    def __post_init__(self) -> None:
        self.queue, self.batch_registry = MemoryTaskQueue(self.clock), MemoryBatchRegistry()
        self.executor_registry = MemoryExecutorRegistry(self.clock, lifetime=LIFETIME)

    # Wake-ups, as a consumer group delivers them.

    def take_wake_ups(self, worker: str, *, count: int) -> dict[int, str]:
        """Deliver new wake-ups."""
        taken: list[int] = []
        for unread in self.log.wake_ups:
            while unread and len(taken) < count:
                taken.append(self._deliver(unread.pop(0), worker))
        return self.delivered(taken)

    def claim_stalled(self, worker: str, *, idle: float) -> dict[int, str]:
        """Deliver wake-ups again that other workers have had pending for too long."""
        until = self.clock() - idle
        found = [n for n, d in self.deliveries.items() if d.since <= until and d.worker != worker]
        for number in found:
            self.deliveries[number] = Delivery(self.deliveries[number].evaluation_id, worker, self.clock())
        return self.delivered(found)

    def left_by(self, worker: str) -> dict[int, str]:
        """Deliver wake-ups again that this worker had pending when it crashed."""
        return self.delivered(n for n, d in self.deliveries.items() if d.worker == worker)

    def delivered(self, numbers: Iterable[int]) -> dict[int, str]:
        """Return the evaluations of some deliveries."""
        return {number: self.deliveries[number].evaluation_id for number in numbers}

    def acknowledge(self, numbers: Iterable[int]) -> None:
        """Acknowledge some wake-ups."""
        for number in numbers:
            self.deliveries.pop(number, None)

    def wake(self, evaluation_id: str) -> None:
        """Add a wake-up, as a plain XADD does."""
        self.log.wake_ups[shard_of(evaluation_id, self.log.shards)].append(evaluation_id)

    def _deliver(self, evaluation_id: str, worker: str) -> int:
        self._delivered += 1
        self.deliveries[self._delivered] = Delivery(evaluation_id, worker, self.clock())
        return self._delivered

    @property
    def is_drained(self) -> bool:
        """Whether every wake-up has been read and acknowledged."""
        return not self.deliveries and not any(self.log.wake_ups)

    # Streams, written without fencing.

    def xadd(self, evaluation_id: str, fields: Iterable[bytes]) -> None:
        """Append an entry to a stream as a plain XADD does."""
        if not self.log._alive(evaluation_id).entries:
            self.log._streams[evaluation_id] = _Stream()
        self.log._streams[evaluation_id].entries.append((self.log._next_id(), list(fields)))

    def stream(self, evaluation_id: str) -> _Stream:
        """Return a stream, which may be empty."""
        return self.log._alive(evaluation_id)

    def epoch(self, shard: int) -> str:
        """Return a shard's epoch."""
        return f"{shard:02}/{self.log.losses}-{self.log._lives}"

    # Batches.

    def holds(self, batch_id: str) -> str:
        """Return the entry and the tasks of a batch that are still stored."""
        queue = self.queue._find(batch_id)
        tasks = [*queue.ready, *queue.owned.values()]
        return " and ".join(
            ["an entry"] * (batch_id in self.batch_registry._entries) + [f"{tasks}"] * bool(tasks)
        )

    # Loss.

    @property
    def losses(self) -> int:
        """Return how often it was lost."""
        return len(self.lost_times)

    @property
    def lost_at(self) -> float:
        """Return when it was lost last."""
        return self.lost_times[-1] if self.lost_times else 0.0

    def remember(self) -> Memory:
        """Take a snapshot, as the append-only file does now and then."""
        unread = [key for shard in self.log.wake_ups for key in shard]
        unread += (delivery.evaluation_id for delivery in self.deliveries.values())
        streams = {key: stream.copy() for key, stream in self.log._streams.items()}
        return Memory(streams, unread, [deepcopy(held) for held in self._others()], self.log.losses)

    def _others(self) -> list[dict[str, Any]]:
        queue, batch_registry = self.queue, self.batch_registry
        return [
            queue._queues,
            batch_registry._entries,
            batch_registry._contexts,
            self.executor_registry._heartbeats,
        ]

    def lose(self, kept: Memory | None = None) -> None:
        """Lose everything, or all writes after the last snapshot."""
        self.log.lose_everything()
        self.lost_times.append(self.clock())
        self.deliveries.clear()
        for gone in self._others():
            gone.clear()
        if kept:
            for held, remembered in zip(self._others(), kept.others, strict=True):
                held.update(remembered)
            self.log._streams.update(kept.streams)
            self.log.losses = kept.losses
            for evaluation_id in dict.fromkeys(kept.unread):
                self.wake(evaluation_id)
