"""The contract of a task queue; `tests/conformance` checks every implementation.

A task is an evaluation id and an attempt, nothing else: its consumer must still claim the attempt in the
log, so that at-least-once delivery is harmless. Tasks wait in queues (`taskqueue.queue_layout`); most
batches have one. A delivered task:

- is owned by its consumer until it is acked or nacked, or until its lease ends and another consumer claims
  it as stalled; `extend` renews the lease;
- is acked, nacked and extended only by the consumer that owns it now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple, Protocol

from taskqueue.queue_layout import DEFAULT_PARTITION, split_queue


class Task(NamedTuple):
    """An attempt of an evaluation, to be executed."""

    evaluation_id: str
    attempt: int

    @property
    def name(self) -> str:
        """Evaluation id and attempt, for logs and traces."""
        return f"{self.evaluation_id}@{self.attempt}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A task that a consumer owns."""

    queue: str
    id: str
    task: Task
    deliveries: int = 1
    """How often this message was delivered; a task that was nacked is a new message."""
    claimed_from: str = ""
    """The consumer that owned it until it was claimed as stalled."""

    @property
    def batch_id(self) -> str:
        """Its batch."""
        return split_queue(self.queue)[0]


@dataclass(frozen=True, slots=True)
class QueueCounts:
    """The tasks of a queue by state."""

    ready: int = 0
    owned: int = 0

    @property
    def is_drained(self) -> bool:
        """Whether the queue is empty and no consumer owns a task of it."""
        return not (self.ready or self.owned)

    def __add__(self, other: "QueueCounts") -> "QueueCounts":
        return QueueCounts(self.ready + other.ready, self.owned + other.owned)


class QueueUnavailable(Exception):  # noqa: N818 - a condition to wait for, not a defect
    """The queue did not answer; the request may or may not have been executed."""


class TaskQueue(Protocol):
    """At-least-once queues of tasks, with leases that consumers extend."""

    async def enqueue(self, queue: str, task: Task) -> str:
        """Add a task; returns the id of its message."""
        ...

    async def enqueue_batch(self, queue: str, tasks: Sequence[Task]) -> list[str]:
        """Add many tasks at once; returns the ids of their messages."""
        ...

    async def consume(
        self, consumer: str, wanted: Mapping[str, int], *, block: timedelta
    ) -> list[Delivery]:
        """Take up to `wanted` tasks of each queue; waits at most `block` for the first of them.

        Returns at once if nothing is wanted.
        """
        ...

    async def claim_stalled(
        self, consumer: str, queues: Sequence[str], *, idle: timedelta, limit: int
    ) -> list[Delivery]:
        """Claim tasks whose consumer has neither acked nor extended them for `idle`.

        At most `limit` in all. A consumer may claim its own stalled tasks, too: the reply that delivered
        them may have been lost.
        """
        ...

    async def ack(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        """Remove finished tasks; returns how many of them this consumer still owned."""
        ...

    async def nack(self, consumer: str, delivery: Delivery) -> bool:
        """Return a task to its queue; False if this consumer no longer owned it."""
        ...

    async def dead_letter(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        """Remove tasks whose evaluation failed; returns how many this consumer still owned.

        The dead letters themselves are rows in Postgres.
        """
        ...

    async def extend(self, consumer: str, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Renew the leases of active tasks; returns those that this consumer still owns."""
        ...

    async def counts(self, queues: Sequence[str]) -> list[QueueCounts]:
        """Count the ready and owned tasks of each queue."""
        ...

    async def delete(self, batch_id: str, partitions: Sequence[str] = (DEFAULT_PARTITION,)) -> None:
        """Delete the queues of these partitions of a batch, with all their tasks."""
        ...
