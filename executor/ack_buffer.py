"""Acknowledgements on their way to the task queue: buffered, sent in batches, retried through outages.

A task is acked only after its closing event is in the log. An ack that is lost is harmless: the task is
redelivered, and its claim is rejected. So is one that is sent twice.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from eventlog import tracing
from eventlog.clock import utc_now
from eventlog.outage import Outage, OutageBackoff
from taskqueue.tasks import Delivery, QueueUnavailable, TaskQueue

MAX_ACKS = 500
"""Tasks acked in one call."""


class AckBuffer:
    """Buffers acks, dead letters and nacks of one consumer."""

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
        self._acks: list[Delivery] = []
        self._dead_letters: list[Delivery] = []
        self._nacks: list[Delivery] = []
        self._traceparents: dict[Delivery, str] = {}
        self._now = now
        self._pending = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()

    @property
    def is_empty(self) -> bool:
        """Whether the queue has confirmed everything."""
        return self._empty.is_set()

    def ack(self, delivery: Delivery, *, traceparent: str | None = None) -> None:
        """Remove a task from the queue."""
        self._acks.append(delivery)
        self._add(delivery, traceparent)

    def dead_letter(self, delivery: Delivery, *, traceparent: str | None = None) -> None:
        """Remove a task whose evaluation failed from the queue."""
        self._dead_letters.append(delivery)
        self._add(delivery, traceparent)

    def nack(self, delivery: Delivery) -> None:
        """Return a task that was not started to the queue."""
        self._nacks.append(delivery)
        self._add(delivery, None)

    def _add(self, delivery: Delivery, traceparent: str | None) -> None:
        if traceparent is not None:
            self._traceparents[delivery] = traceparent
        self._pending.set()
        self._empty.clear()

    async def empty(self) -> None:
        """Wait until the queue has confirmed everything."""
        await self._empty.wait()

    async def run(self) -> None:
        """Flush the buffer, for ever."""
        while True:
            await self._pending.wait()
            await asyncio.sleep(self._linger)
            try:
                await self._flush()
            except QueueUnavailable as error:
                await self._backoff.wait(error)
            else:
                self._backoff.succeeded()

    async def _flush(self) -> None:
        """Send everything; an entry stays in the buffer until the queue has confirmed it."""
        self._pending.clear()
        try:
            while part := self._acks[:MAX_ACKS]:
                with self._spans("eval.queue.ack", part):
                    await self._tasks.ack(self._consumer, part)
                del self._acks[: len(part)]
            await self._flush_dead_letters()
            while self._nacks:
                await self._tasks.nack(self._consumer, self._nacks[0])
                del self._nacks[0]
        finally:
            if self._acks or self._dead_letters or self._nacks:
                self._pending.set()
            else:
                self._empty.set()

    async def _flush_dead_letters(self) -> None:
        while part := self._dead_letters[:MAX_ACKS]:
            with self._spans("eval.queue.nack", part, reason="dlq"):
                await self._tasks.dead_letter(self._consumer, part)
            del self._dead_letters[: len(part)]

    @contextmanager
    def _spans(self, name: str, part: Sequence[Delivery], **attributes: str) -> Iterator[None]:
        """Emit a span for each traced task of a call: nearly always none is."""
        traced = [each for each in part if each in self._traceparents] if self._traceparents else ()
        started = self._now() if traced else None
        yield
        for each in traced:
            if started:
                tracing.finished(
                    name,
                    self._traceparents.pop(each),
                    start=started,
                    end=self._now(),
                    worker_id=self._consumer,
                    task_id=each.task.name,
                    **attributes,
                )
