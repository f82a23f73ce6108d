"""The contract of a task queue; `tests/conformance` holds every form to it.

A task is an evaluation id and an attempt, nothing else: its consumer must still claim the attempt in the
log, so that at-least-once delivery is harmless. Tasks wait in queues (`taskqueue.queue_layout`); most
batches have one. A delivered task:

- it stays with its consumer until it is acked or nacked, or until it was left idle for too long and
  somebody took it over; `extend` says that it is still being worked on;
- ack, nack and extend act only for the consumer that holds it now.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import NamedTuple, Protocol

from taskqueue.queue_layout import DEFAULT_PARTITION, split_queue

DEAD_LETTERS_STAY = timedelta(days=1)
"""How long the dead letters of a batch outlive it."""
DEAD_LETTERS_KEPT = 10_000
"""About so many a batch, the newest: they are a mirror, and Postgres has them all."""


class Task(NamedTuple):
    """What is to be worked on."""

    evaluation_id: str
    attempt: int

    @property
    def name(self) -> str:
        """How people write it."""
        return f"{self.evaluation_id}@{self.attempt}"


@dataclass(frozen=True, slots=True)
class Delivery:
    """A task in the hands of a consumer."""

    queue: str
    id: str
    task: Task
    deliveries: int = 1
    """How often this message has been handed out; a task that was given back is a new message."""
    claimed_from: str = ""
    """The consumer that held it until it was claimed as stalled."""

    @property
    def batch_id(self) -> str:
        """The batch it is of."""
        return split_queue(self.queue)[0]


@dataclass(frozen=True, slots=True)
class Counts:
    """How much of a line is where."""

    ready: int = 0
    delayed: int = 0
    owned: int = 0

    @property
    def is_drained(self) -> bool:
        """Whether nothing of it is in the queue any more."""
        return not (self.ready or self.delayed or self.owned)


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """A task that was given up, as the queue remembers it; Postgres has the whole story."""

    task: Task
    reason: str
    given_up_at: datetime


class QueueUnavailable(Exception):  # noqa: N818 - what callers catch to wait and try again
    """The queue could not be reached, or did not answer: what was asked may or may not have happened."""


class TaskQueue(Protocol):
    """Where tasks wait, line by line."""

    async def enqueue(self, queue: str, task: Task, *, delay: timedelta = timedelta(0)) -> str:
        """Add a task, to be handed out now or after a while; returns the id of its message."""
        ...

    async def enqueue_batch(self, queue: str, tasks: Sequence[Task]) -> list[str]:
        """Add many tasks at once; returns the ids of their messages."""
        ...

    async def consume(
        self, consumer: str, wanted: Mapping[str, int], *, block: timedelta
    ) -> list[Delivery]:
        """Take up to so many tasks of each line; waits at most `block` for the first of them.

        Where nothing is wanted there is nothing to wait for.
        """
        ...

    async def take_over(
        self, consumer: str, queues: Sequence[str], *, idle: timedelta, limit: int
    ) -> list[Delivery]:
        """Take tasks whose consumer has neither finished nor extended them for so long.

        At most `limit` in all. What a consumer itself has left idle comes back to it, too: the reply
        that brought it may have been lost.
        """
        ...

    async def ack(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        """Let finished tasks go; returns how many of them this consumer still held."""
        ...

    async def requeue(self, consumer: str, delivery: Delivery, *, delay: timedelta = timedelta(0)) -> bool:
        """Give a task back, to be handed out again now or after a while; False if it was no longer held."""
        ...

    async def dead_letter(self, consumer: str, delivery: Delivery, *, reason: str) -> bool:
        """Let a task go, and remember that it was given up; False if it was no longer held."""
        ...

    async def extend(self, consumer: str, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Say that tasks are still being worked on; returns those that this consumer still holds."""
        ...

    async def counts(self, queues: Sequence[str]) -> list[Counts]:
        """Say how much of each line is ready, delayed, and in somebody's hands."""
        ...

    async def dead_letters(self, batch_id: str, *, limit: int) -> list[DeadLetter]:
        """List what was given up, newest first."""
        ...

    async def forget(self, batch_id: str, partitions: Sequence[str] = (DEFAULT_PARTITION,)) -> None:
        """Remove all that these lines of a batch hold; its dead letters stay for a day."""
        ...
