"""Telling executors: the opening goes into the log, and only then its task into the queue."""

from collections.abc import Iterable, Sequence
from itertools import islice

from eventlog import payloads as p
from eventlog.events import Event
from eventlog.log import Append, LogWriter, Mode, Record
from taskqueue.lines import Lines
from taskqueue.tasks import Task, TaskQueue

CHUNK = 500
"""Openings in one round trip."""

Events = Sequence[tuple[Event, bytes]]


class Publisher:
    """Publishes what Postgres has already; any of it may be published again."""

    def __init__(self, log: LogWriter, queue: TaskQueue) -> None:
        self._log = log
        self._queue = queue

    async def publish(self, lines: Lines | None, openings: Iterable[tuple[Events, str]]) -> int:
        """Append openings, each in its epoch, and enqueue those that the log took; returns how many.

        Endings need no line to wait in.
        """
        told = 0
        waiting = iter(openings)
        while chunk := list(islice(waiting, CHUNK)):
            calls = [_append(events, epoch) for events, epoch in chunk]
            replies = await self._log.append(calls)
            taken = [
                events[0][0]
                for (events, _), reply in zip(chunk, replies, strict=True)
                if reply.answers[0].on_record and is_to_be_run(events)
            ]
            if taken and lines:
                await self.enqueue(lines, taken)
            told += len(taken)
        return told

    async def enqueue(self, lines: Lines, openings: Sequence[Event]) -> None:
        """Put the tasks of openings where they have to wait."""
        tasks: dict[str, list[Task]] = {}
        for event in openings:
            if isinstance(opening := event.data, p.Queued):
                task = Task(event.evaluation_id, event.attempt)
                tasks.setdefault(lines.line_for(opening), []).append(task)
        for line, waiting in tasks.items():
            await self._queue.enqueue_batch(line, waiting)


def _append(events: Events, epoch: str) -> Append:
    """Wake a reader for an ending: no sweep would find what else the stream holds, nor let it go."""
    records = [Record(event, body) for event, body in events]
    mode = Mode.OPENING if is_to_be_run(events) else Mode.NORMAL
    return Append(events[0][0].evaluation_id, records, epoch, mode)


def is_to_be_run(events: Events) -> bool:
    """Whether an attempt was opened for executors, and not ended at once."""
    return len(events) == 1 and isinstance(events[0][0].data, p.Queued)
