"""The simulated Redis: a log in memory, and beside it wake-ups in hand, tasks and heartbeats."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from eventlog.keys import shard_of
from eventlog.memory import MemoryEventLog, _Stream

HEARTBEAT_TTL = 3.0


class Task(NamedTuple):
    """What an executor is asked to do: one attempt of one evaluation."""

    evaluation_id: str
    attempt: int


@dataclass(slots=True)
class Delivery:
    """A wake-up in a worker's hands."""

    evaluation_id: str
    worker: str
    since: float


@dataclass(slots=True)
class Memory:
    """What Redis would know again if it lost all it heard from now on."""

    streams: dict[str, _Stream]
    unread: list[str]


@dataclass(slots=True)
class SimulatedRedis:
    """Everything that a loss of Redis takes away."""

    log: MemoryEventLog
    clock: Callable[[], float]
    losses: int = 0
    lost_at: float = 0.0
    deliveries: dict[int, Delivery] = field(default_factory=dict)
    tasks: deque[Task] = field(default_factory=deque)
    tasks_in_hand: dict[Task, str] = field(default_factory=dict)
    beats: dict[str, float] = field(default_factory=dict)
    _delivered: int = 0

    # Wake-ups, as a consumer group hands them out.

    def take_wake_ups(self, worker: str, *, count: int) -> dict[int, str]:
        """Hand out what nobody has been given yet."""
        taken: list[int] = []
        for unread in self.log.wake_ups:
            while unread and len(taken) < count:
                taken.append(self._deliver(unread.pop(0), worker))
        return self.in_hand(taken)

    def take_over(self, worker: str, *, idle: float) -> dict[int, str]:
        """Hand out what others have had in hand for too long."""
        until = self.clock() - idle
        found = [n for n, d in self.deliveries.items() if d.since <= until and d.worker != worker]
        for number in found:
            self.deliveries[number] = Delivery(self.deliveries[number].evaluation_id, worker, self.clock())
        return self.in_hand(found)

    def left_by(self, worker: str) -> dict[int, str]:
        """Hand out again what this worker had in hand when it died."""
        return self.in_hand(n for n, d in self.deliveries.items() if d.worker == worker)

    def in_hand(self, numbers: Iterable[int]) -> dict[int, str]:
        """Name the evaluations that some deliveries tell of."""
        return {number: self.deliveries[number].evaluation_id for number in numbers}

    def acknowledge(self, numbers: Iterable[int]) -> None:
        """Be done with some wake-ups."""
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

    # Streams, written past every fence.

    def xadd(self, evaluation_id: str, fields: Iterable[bytes]) -> None:
        """Put an entry into a stream as a plain XADD does."""
        if not self.log._alive(evaluation_id).entries:
            self.log._streams[evaluation_id] = _Stream()
        self.log._streams[evaluation_id].entries.append((self.log._next_id(), list(fields)))

    def stream(self, evaluation_id: str) -> _Stream:
        """Look at a stream, which may be empty."""
        return self.log._alive(evaluation_id)

    def epoch(self, shard: int) -> str:
        """Return a shard's epoch."""
        return f"{shard:02}-{self.log._lives}"

    # Executors.

    def is_live(self, executor: str | None) -> bool:
        """Whether an executor has been heard of lately."""
        return self.clock() - self.beats.get(executor or "", float("-inf")) <= HEARTBEAT_TTL

    def is_on_its_way(self, task: Task) -> bool:
        """Whether a task is queued, or in the hands of somebody who lives."""
        return task in self.tasks or self.is_live(self.tasks_in_hand.get(task))

    # Loss.

    def remember(self) -> Memory:
        """Write everything down, as the append-only file does every now and then."""
        unread = [key for shard in self.log.wake_ups for key in shard]
        unread += (delivery.evaluation_id for delivery in self.deliveries.values())
        return Memory({key: stream.copy() for key, stream in self.log._streams.items()}, unread)

    def lose(self, kept: Memory | None = None) -> None:
        """Forget everything, or all that was heard after something was written down."""
        self.log.lose_everything()
        self.losses, self.lost_at = self.losses + 1, self.clock()
        for gone in (self.deliveries, self.tasks, self.tasks_in_hand, self.beats):
            gone.clear()
        if kept:
            self.log._streams.update(kept.streams)
            for evaluation_id in dict.fromkeys(kept.unread):
                self.wake(evaluation_id)
