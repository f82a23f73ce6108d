"""Telling executors: the opening goes into the log, and only then its task into the queue."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from itertools import islice

from eventlog import payloads as p
from eventlog import tracing
from eventlog.clock import utc_now
from eventlog.events import Event
from eventlog.log import Append, CommitMark, EncodedEvent, EventLog, Mode
from taskqueue.queue_layout import QueueLayout
from taskqueue.tasks import Task, TaskQueue

CHUNK = 500
"""Openings in one round trip."""

Events = Sequence[tuple[Event, bytes]]


class Publisher:
    """Publishes what Postgres has already; any of it may be published again."""

    def __init__(self, log: EventLog, queue: TaskQueue) -> None:
        self._log = log
        self._queue = queue

    async def publish(self, layout: QueueLayout | None, openings: Iterable[tuple[Events, str]]) -> int:
        """Append openings, each in its epoch, and enqueue those that the log took; returns how many.

        Endings need no line to wait in.
        """
        told = 0
        waiting = iter(openings)
        while chunk := list(islice(waiting, CHUNK)):
            calls = [_append(events, epoch) for events, epoch in chunk]
            begun = utc_now()
            replies = await self._log.append(calls)
            taken = [
                events[0][0]
                for (events, _), reply in zip(chunk, replies, strict=True)
                if reply.results[0].acknowledged and is_to_be_run(events)
            ]
            _trace_publishing(taken, begun)
            if taken and layout:
                await self.enqueue(layout, taken)
            told += len(taken)
        return told

    async def expire_streams(self, openings: Sequence[Event]) -> None:
        """Let streams expire that nobody writes to for a day, perhaps; the next opening makes them last."""
        if openings:
            marks = [CommitMark(each.evaluation_id, *each.key, ended=True) for each in openings]
            await self._log.settle(marks)

    async def enqueue(self, layout: QueueLayout, openings: Sequence[Event]) -> None:
        """Put the tasks of openings where they have to wait."""
        queued: dict[str, list[Event]] = {}
        for event in openings:
            if isinstance(opening := event.data, p.Queued):
                queued.setdefault(layout.queue_for(opening), []).append(event)
        for queue, waiting in queued.items():
            begun = utc_now()
            await self._queue.enqueue_batch(queue, [Task(e.evaluation_id, e.attempt) for e in waiting])
            _trace_enqueuing(waiting, begun)


def _trace_publishing(openings: Sequence[Event], begun: datetime) -> None:
    for event in openings:
        if event.traceparent:
            about = {"evaluation_id": event.evaluation_id, "batch_id": event.batch_id}
            span = "eval.coordinator.publish", event.traceparent
            tracing.finished(*span, start=begun, end=utc_now(), attempt=event.attempt, **about)


def _trace_enqueuing(openings: Sequence[Event], begun: datetime) -> None:
    for event in openings:
        if event.traceparent:
            span = "eval.queue.enqueue", event.traceparent
            many = len(openings)
            tracing.finished(*span, start=begun, end=utc_now(), batch_id=event.batch_id, task_count=many)


def _append(events: Events, epoch: str) -> Append:
    """Wake a reader for an ending: no sweep would find what else the stream holds, nor let it go."""
    records = [EncodedEvent(event, body) for event, body in events]
    mode = Mode.OPENING if is_to_be_run(events) else Mode.NORMAL
    return Append(events[0][0].evaluation_id, records, epoch, mode)


def is_to_be_run(events: Events) -> bool:
    """Whether an attempt was opened for executors, and not ended at once."""
    return len(events) == 1 and isinstance(events[0][0].data, p.Queued)
