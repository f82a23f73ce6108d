"""Telling the queue that tasks are done: in company, and again until it has heard.

Only what is on record leaves: a task whose word to the queue is lost comes back to somebody, who finds
that its attempt is taken.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime

from eventlog import tracing
from eventlog.clock import utc_now
from executor.outage import Outage, OutageBackoff
from taskqueue.tasks import Delivery, QueueUnavailable, TaskQueue

AT_ONCE = 500
"""Tasks let go in one call."""
SIDE_BY_SIDE = 8
"""Calls under way at a time, where each is for one task."""


@dataclass(frozen=True, slots=True)
class GivenUp:
    """A task whose evaluation failed, and why."""

    delivery: Delivery
    reason: str


class AckBuffer:
    """Tasks on their way out."""

    def __init__(
        self,
        tasks: TaskQueue,
        consumer: str,
        *,
        linger: float,
        outage: Outage,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._tasks = tasks
        self._consumer = consumer
        self._linger = linger
        self._backoff = OutageBackoff(outage)
        self._done: list[Delivery] = []
        self._given_up: list[GivenUp] = []
        self._given_back: list[Delivery] = []
        self._traced: dict[Delivery, str] = {}
        self._now = now
        self._news = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    def ack(self, delivery: Delivery, *, traceparent: str | None = None) -> None:
        """Let a task go."""
        self._done.append(delivery)
        self._note(delivery, traceparent)

    def dead_letter(self, delivery: Delivery, reason: str, *, traceparent: str | None = None) -> None:
        """Let a task go, to be remembered as a dead letter."""
        self._given_up.append(GivenUp(delivery, reason))
        self._note(delivery, traceparent)

    def nack(self, delivery: Delivery) -> None:
        """Hand back a task that was not begun."""
        self._given_back.append(delivery)
        self._note(delivery, None)

    def _note(self, delivery: Delivery, traceparent: str | None) -> None:
        if traceparent is not None:
            self._traced[delivery] = traceparent
        self._news.set()
        self._empty.clear()

    async def empty(self) -> None:
        """Wait until the queue has heard of everything."""
        await self._empty.wait()

    async def run(self) -> None:
        """Tell the queue, for ever."""
        while True:
            await self._news.wait()
            await asyncio.sleep(self._linger)
            try:
                await self._tell()
            except QueueUnavailable as error:
                await self._backoff.wait(error)
            else:
                self._backoff.succeeded()

    async def _tell(self) -> None:
        """Tell the queue what there is; what it did not hear of stays, and saying it twice is harmless."""
        self._news.clear()
        try:
            while part := self._done[:AT_ONCE]:
                with self._traced_as("eval.queue.ack", part):
                    await self._tasks.ack(self._consumer, part)
                del self._done[: len(part)]
            await self._tell_of_given_up()
            while self._given_back:
                await self._tasks.requeue(self._consumer, self._given_back[0])
                del self._given_back[0]
        finally:
            if self._done or self._given_up or self._given_back:
                self._news.set()
            else:
                self._empty.set()

    async def _tell_of_given_up(self) -> None:
        while part := self._given_up[:SIDE_BY_SIDE]:
            with self._traced_as("eval.queue.nack", [each.delivery for each in part], reason="dlq"):
                await asyncio.gather(
                    *(
                        self._tasks.dead_letter(self._consumer, each.delivery, reason=each.reason)
                        for each in part
                    )
                )
            del self._given_up[: len(part)]

    @contextmanager
    def _traced_as(self, name: str, part: Sequence[Delivery], **why: str) -> Iterator[None]:
        """Put a span on record for each of these that is traced: nearly always none is."""
        traced = [each for each in part if each in self._traced] if self._traced else ()
        started = self._now() if traced else None
        yield
        for each in traced:
            if started:
                tracing.finished(
                    name,
                    self._traced.pop(each),
                    start=started,
                    end=self._now(),
                    worker_id=self._consumer,
                    task_id=each.task.name,
                    **why,
                )
