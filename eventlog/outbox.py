"""The outbox of a writer: which events to send, to keep and to release. Pure.

A writer owns attempts. Each `AttemptBuffer` holds the events of one attempt in three stretches:

    unsent  → in flight → acknowledged
    (never dropped)       (the tail: kept until Postgres has it, re-appended if Redis loses it)

This is the outbox pattern with at-least-once delivery: an append is idempotent by the event's key, so it
is repeated until Redis acknowledges it. FENCED, CLOSED or CONFLICT means that another writer ended the
attempt: the buffer is lost, and its owner gets `AttemptLost`. EPOCH means that Redis lost data: the whole
buffer is re-appended, as one tail.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from eventlog import payloads as p
from eventlog.events import EventKey
from eventlog.lifecycle import CLOSING_TYPES
from eventlog.log import Append, AppendResponse, AppendResult, EncodedEvent, Mode

RECORD_OVERHEAD = 600
"""Bytes a record costs in memory besides its body: the event's objects, measured by `bench.latency`."""


@dataclass(slots=True, eq=False)
class AttemptBuffer:
    """The events of one owned attempt, in order."""

    evaluation_id: str
    batch_id: str
    attempt: int
    unsent: list[EncodedEvent] = field(default_factory=list)
    in_flight: list[EncodedEvent] = field(default_factory=list)
    tail: list[EncodedEvent] = field(default_factory=list)
    unsent_since: float = 0.0
    in_flight_since: float = 0.0
    last_sequence: int = -1
    closed: bool = False
    needs_reappend: bool = False
    reappend_in_flight: bool = False
    finished: bool = False
    """Whether the log has acknowledged all of it, to its closing event: no fence can take it away."""
    lost: AppendResult | None = None
    late: bool = False
    """Whether it holds what was paid for in a lost attempt: to be kept, and no more."""
    traceparent: str | None = None
    """The trace context of its events, if their evaluation is traced."""

    @property
    def depth(self) -> int:
        """Events not yet acknowledged."""
        return len(self.unsent) + len(self.in_flight)

    @property
    def acknowledged(self) -> bool:
        """Whether everything recorded so far is in the log."""
        return self.depth == 0 and not self.needs_reappend

    @property
    def awaits_reappend(self) -> bool:
        """Whether it is still to be appended again after an epoch change."""
        return self.needs_reappend or (self.reappend_in_flight and bool(self.in_flight))

    def due_at(self, linger: float) -> float:
        """When to send: at once what closes the attempt or was lost, else after the linger time."""
        return 0.0 if self.closed or self.late or self.needs_reappend else self.unsent_since + linger

    def is_committed_by(self, mark: EventKey | None) -> bool:
        """Whether Postgres has all of it, or a higher attempt.

        No mark means that its stream expired: the evaluation has ended there.
        """
        if not self.acknowledged:
            return False
        if mark is None:
            return bool(self.tail)
        return mark[0] > self.attempt or (self.closed and mark >= (self.attempt, self.last_sequence))


class Outbox:
    """All attempt buffers of one writer."""

    def __init__(self, *, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._drafts: dict[AttemptBuffer, None] = {}
        self._waiting: dict[AttemptBuffer, None] = {}

    def __iter__(self) -> Iterator[AttemptBuffer]:
        return iter(list(self._drafts))

    @property
    def has_capacity(self) -> bool:
        """Whether the writer may claim another attempt (backpressure); those it owns may continue."""
        return self.bytes < self.max_bytes

    @property
    def depth(self) -> int:
        """Events of all buffers not yet acknowledged."""
        return sum(buffer.depth for buffer in self)

    def track(self, buffer: AttemptBuffer, claim: EncodedEvent | None = None) -> AttemptBuffer:
        """Start tracking a buffer, of which the log may already have the claim."""
        self._drafts[buffer] = None
        if claim:
            buffer.tail.append(claim)
            buffer.last_sequence = claim.event.sequence
            self.bytes += _size(claim)
        return buffer

    def add(self, buffer: AttemptBuffer, record: EncodedEvent, now: float) -> None:
        """Add an event; it is not dropped before the log acknowledges or refuses it."""
        if not buffer.unsent:
            buffer.unsent_since = now
        buffer.unsent.append(record)
        buffer.last_sequence = record.event.sequence
        buffer.closed = record.event.type in CLOSING_TYPES
        self._waiting[buffer] = None
        self.bytes += _size(record)

    def due(self, now: float, linger: float, limit: int) -> list[AttemptBuffer]:
        """Choose what to send now; a buffer in flight waits for its response, which keeps its order."""
        return list(islice((d for d in self._sendable() if d.due_at(linger) <= now), limit))

    def next_due(self, linger: float) -> float | None:
        """Return when the next buffer is due, if any is unsent."""
        return min((d.due_at(linger) for d in self._sendable()), default=None)

    def _sendable(self) -> Iterator[AttemptBuffer]:
        """Leave out what is in flight, and what would overtake a lower attempt of its evaluation.

        Re-appended before a lower attempt, a higher one would fence it off. One round trip is not order
        enough: a server that is just starting may refuse its first call and take the second.
        """
        lowest: dict[str, int] = {}
        for buffer in self._waiting:
            key, attempt = buffer.evaluation_id, buffer.attempt
            lowest[key] = min(lowest.get(key, attempt), attempt)
        return (d for d in self._waiting if not d.in_flight and d.attempt == lowest[d.evaluation_id])

    def send(self, buffer: AttemptBuffer, epoch: str) -> Append:
        """Move a buffer's unsent events into flight, as one call."""
        mode = Mode.LATE if buffer.late else Mode.TAIL if buffer.needs_reappend else Mode.NORMAL
        if mode is Mode.TAIL:
            buffer.unsent, buffer.tail = [*buffer.tail, *buffer.unsent], []
            buffer.needs_reappend = False
        buffer.reappend_in_flight = mode is Mode.TAIL
        buffer.in_flight, buffer.unsent = buffer.unsent, []
        buffer.in_flight_since = buffer.unsent_since
        self._waiting.pop(buffer, None)
        return Append(buffer.evaluation_id, buffer.in_flight, "" if buffer.late else epoch, mode)

    def requeue(self, buffer: AttemptBuffer) -> None:
        """Make a call unsent again whose outcome is unknown: appends are idempotent."""
        buffer.unsent, buffer.in_flight = [*buffer.in_flight, *buffer.unsent], []
        buffer.needs_reappend = buffer.needs_reappend or buffer.reappend_in_flight
        buffer.unsent_since = buffer.in_flight_since
        self._waiting[buffer] = None

    def apply(self, buffer: AttemptBuffer, response: AppendResponse) -> None:
        """Apply the log's response."""
        refusal = next((a for a in response.results if not a.acknowledged), None)
        if buffer.late:
            self.release(buffer)
        elif refusal is AppendResult.EPOCH:
            self.requeue(buffer)
            buffer.needs_reappend = True
        elif refusal and not (refusal is AppendResult.FENCED and buffer.finished):
            refused = [
                r for r, a in zip(buffer.in_flight, response.results, strict=True) if not a.acknowledged
            ]
            paid = [r for r in (*refused, *buffer.unsent) if _was_paid_for(r)]
            buffer.lost = refusal
            self.release(buffer)
            if refusal is AppendResult.FENCED and paid:
                self.track_late(buffer, paid, buffer.in_flight_since)
        else:
            # Also where a higher attempt stands before a finished one: its events may still be in the log,
            # and until Postgres has them, another loss would leave them here and nowhere else.
            buffer.tail += buffer.in_flight
            buffer.in_flight = []
            buffer.finished = buffer.closed and not buffer.unsent

    def track_late(self, lost: AttemptBuffer, paid: list[EncodedEvent], now: float) -> None:
        """Track what was paid for in an attempt that another writer has ended."""
        late = self.track(
            AttemptBuffer(
                lost.evaluation_id, lost.batch_id, lost.attempt, late=True, traceparent=lost.traceparent
            )
        )
        for record in paid:
            self.add(late, record, now)

    def reappend(self, buffer: AttemptBuffer) -> None:
        """Send the whole buffer again: Redis has lost it."""
        if buffer.tail or buffer.depth:
            buffer.needs_reappend = True
            self._waiting[buffer] = None

    def release(self, buffer: AttemptBuffer) -> None:
        """Drop a buffer: Postgres has it, or another writer owns the attempt."""
        self._drafts.pop(buffer, None)
        self._waiting.pop(buffer, None)
        kept = (*buffer.unsent, *buffer.in_flight, *buffer.tail)
        self.bytes -= sum(map(_size, kept))
        buffer.unsent, buffer.in_flight, buffer.tail = [], [], []


def _was_paid_for(record: EncodedEvent) -> bool:
    match record.event.data:
        case p.Responded(cached=cached):
            return not cached
        case p.Scored():
            return True
        case _:
            return False


def _size(record: EncodedEvent) -> int:
    return len(record.body) + RECORD_OVERHEAD
