"""Publication of attempts to executors: append the opening to the log, then enqueue its task."""

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
    """Publishes openings and endings that Postgres has committed; publishing is idempotent."""

    def __init__(self, log: EventLog, queue: TaskQueue) -> None:
        self._log = log
        self._queue = queue

    async def publish(self, layout: QueueLayout | None, openings: Iterable[tuple[Events, str]]) -> int:
        """Append openings, each in its epoch; enqueue those that the log acknowledged; returns how many.

        Endings have no task, so they need no queue layout.
        """
        published = 0
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
            published += len(taken)
        return published

    async def expire_streams(self, openings: Sequence[Event]) -> None:
        """Set a TTL on the streams of attempts that are not published yet; the next opening removes it."""
        if openings:
            marks = [CommitMark(each.evaluation_id, *each.key, ended=True) for each in openings]
            await self._log.settle(marks)

    async def enqueue(self, layout: QueueLayout, openings: Sequence[Event]) -> None:
        """Enqueue the tasks of openings, each in its partition."""
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
    """Make the append of an opening or an ending; only an ending wakes a storage worker.

    No sweep selects an evaluation that has ended, so the rest of its stream would never be applied.
    """
    records = [EncodedEvent(event, body) for event, body in events]
    mode = Mode.OPENING if is_to_be_run(events) else Mode.NORMAL
    return Append(events[0][0].evaluation_id, records, epoch, mode)


def is_to_be_run(events: Events) -> bool:
    """Whether an attempt was opened for executors, and not ended at once."""
    return len(events) == 1 and isinstance(events[0][0].data, p.Queued)
