"""The memory of a writer's event queue, without clock or network: what to send, keep and let go.

A writer owns attempts. Each `AttemptBuffer` holds the events of one attempt in three stretches:

    unsent  → in flight → acknowledged
    (never dropped)       (the tail: kept until Postgres has it, put back if Redis forgets it)

A refusal (FENCED, CLOSED, CONFLICT) means that somebody else ended the attempt: the draft is lost, and
its owner is told. EPOCH means that Redis forgot: the whole draft goes again, as one tail.
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
    forgotten_by_redis: bool = False
    tail_in_flight: bool = False
    finished: bool = False
    """Whether the log has acknowledged all of it, to its closing event: nobody can take it away."""
    lost: AppendResult | None = None
    late: bool = False
    """Whether it is what was paid for in a lost attempt: to be kept, and nothing more."""
    traceparent: str | None = None
    """What its events carry, if their evaluation is traced."""

    @property
    def depth(self) -> int:
        """Events not yet on record."""
        return len(self.unsent) + len(self.in_flight)

    @property
    def acknowledged(self) -> bool:
        """Whether everything recorded so far is in the log."""
        return self.depth == 0 and not self.forgotten_by_redis

    @property
    def awaits_tail(self) -> bool:
        """Whether it is still to be appended again after an epoch change."""
        return self.forgotten_by_redis or (self.tail_in_flight and bool(self.in_flight))

    def due_at(self, linger: float) -> float:
        """When to send: at once what closes the attempt or was forgotten, else after a moment's company."""
        return 0.0 if self.closed or self.late or self.forgotten_by_redis else self.unsent_since + linger

    def is_settled_by(self, mark: EventKey | None) -> bool:
        """Whether Postgres has all of it, or a higher attempt.

        No mark means that its stream expired: the evaluation has ended there, whoever ended it.
        """
        if not self.acknowledged:
            return False
        if mark is None:
            return bool(self.tail)
        return mark[0] > self.attempt or (self.closed and mark >= (self.attempt, self.last_sequence))


class Outbox:
    """All drafts of one writer."""

    def __init__(self, *, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._drafts: dict[AttemptBuffer, None] = {}
        self._waiting: dict[AttemptBuffer, None] = {}

    def __iter__(self) -> Iterator[AttemptBuffer]:
        return iter(list(self._drafts))

    @property
    def has_room(self) -> bool:
        """Whether the writer may take on another attempt; those it has may always go on."""
        return self.bytes < self.max_bytes

    @property
    def depth(self) -> int:
        """Events of all drafts not yet on record."""
        return sum(draft.depth for draft in self)

    def keep(self, draft: AttemptBuffer, claim: EncodedEvent | None = None) -> AttemptBuffer:
        """Start keeping a draft, of which the log may already have the claim."""
        self._drafts[draft] = None
        if claim:
            draft.tail.append(claim)
            draft.last_sequence = claim.event.sequence
            self.bytes += _size(claim)
        return draft

    def add(self, draft: AttemptBuffer, record: EncodedEvent, now: float) -> None:
        """Take an event in; it will not be dropped before the log has it or refuses it."""
        if not draft.unsent:
            draft.unsent_since = now
        draft.unsent.append(record)
        draft.last_sequence = record.event.sequence
        draft.closed = record.event.type in CLOSING_TYPES
        self._waiting[draft] = None
        self.bytes += _size(record)

    def due(self, now: float, linger: float, limit: int) -> list[AttemptBuffer]:
        """Choose what to send now; a draft in flight waits for its answer, which keeps its order."""
        return list(islice((d for d in self._sendable() if d.due_at(linger) <= now), limit))

    def next_due(self, linger: float) -> float | None:
        """Say when something will be due, if anything waits."""
        return min((d.due_at(linger) for d in self._sendable()), default=None)

    def _sendable(self) -> Iterator[AttemptBuffer]:
        """Leave out what is in flight, and what would overtake a lower attempt of its evaluation.

        Put back before a lower attempt, a higher one would fence it off. One round trip is not order
        enough: a server that is just starting may refuse the first call of it and take the second.
        """
        lowest: dict[str, int] = {}
        for draft in self._waiting:
            key, attempt = draft.evaluation_id, draft.attempt
            lowest[key] = min(lowest.get(key, attempt), attempt)
        return (d for d in self._waiting if not d.in_flight and d.attempt == lowest[d.evaluation_id])

    def send(self, draft: AttemptBuffer, epoch: str) -> Append:
        """Move a draft's unsent events into flight, as one call."""
        mode = Mode.LATE if draft.late else Mode.TAIL if draft.forgotten_by_redis else Mode.NORMAL
        if mode is Mode.TAIL:
            draft.unsent, draft.tail = [*draft.tail, *draft.unsent], []
            draft.forgotten_by_redis = False
        draft.tail_in_flight = mode is Mode.TAIL
        draft.in_flight, draft.unsent = draft.unsent, []
        draft.in_flight_since = draft.unsent_since
        self._waiting.pop(draft, None)
        return Append(draft.evaluation_id, draft.in_flight, "" if draft.late else epoch, mode)

    def failed(self, draft: AttemptBuffer) -> None:
        """Take a call back whose fate is unknown: asking again is harmless."""
        draft.unsent, draft.in_flight = [*draft.in_flight, *draft.unsent], []
        draft.forgotten_by_redis = draft.forgotten_by_redis or draft.tail_in_flight
        draft.unsent_since = draft.in_flight_since
        self._waiting[draft] = None

    def answered(self, draft: AttemptBuffer, reply: AppendResponse) -> None:
        """Take in what the log said."""
        refusal = next((a for a in reply.results if not a.acknowledged), None)
        if draft.late:
            self.release(draft)
        elif refusal is AppendResult.EPOCH:
            self.failed(draft)
            draft.forgotten_by_redis = True
        elif refusal and not (refusal is AppendResult.FENCED and draft.finished):
            refused = [r for r, a in zip(draft.in_flight, reply.results, strict=True) if not a.acknowledged]
            paid = [r for r in (*refused, *draft.unsent) if _says_what_was_paid(r)]
            draft.lost = refusal
            self.release(draft)
            if refusal is AppendResult.FENCED and paid:
                self.keep_late(draft, paid, draft.in_flight_since)
        else:
            # Also where a higher attempt stands before a finished one: its events may still be in the log,
            # and until Postgres has them, another loss would leave them here and nowhere else.
            draft.tail += draft.in_flight
            draft.in_flight = []
            draft.finished = draft.closed and not draft.unsent

    def keep_late(self, lost: AttemptBuffer, paid: list[EncodedEvent], now: float) -> None:
        """Keep what was paid for in an attempt that others have ended."""
        late = self.keep(
            AttemptBuffer(
                lost.evaluation_id, lost.batch_id, lost.attempt, late=True, traceparent=lost.traceparent
            )
        )
        for record in paid:
            self.add(late, record, now)

    def forgotten(self, draft: AttemptBuffer) -> None:
        """Redis has lost this draft: it goes again, whole."""
        if draft.tail or draft.depth:
            draft.forgotten_by_redis = True
            self._waiting[draft] = None

    def release(self, draft: AttemptBuffer) -> None:
        """Let a draft go: Postgres has it, or it is no longer ours."""
        self._drafts.pop(draft, None)
        self._waiting.pop(draft, None)
        kept = (*draft.unsent, *draft.in_flight, *draft.tail)
        self.bytes -= sum(map(_size, kept))
        draft.unsent, draft.in_flight, draft.tail = [], [], []


def _says_what_was_paid(record: EncodedEvent) -> bool:
    match record.event.data:
        case p.Responded(cached=cached):
            return not cached
        case p.Scored():
            return True
        case _:
            return False


def _size(record: EncodedEvent) -> int:
    return len(record.body) + RECORD_OVERHEAD
