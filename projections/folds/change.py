"""The change that an evaluation's new events make to the tables: a pure fold of a replayed stream."""

from dataclasses import dataclass, field
from datetime import date, datetime
from hashlib import sha256
from typing import NamedTuple

from eventlog import payloads as p
from eventlog.codec import QuarantineReason, RejectedEntry
from eventlog.events import Event, EventKey
from eventlog.lifecycle import CLOSED, ENDED, Phase
from eventlog.timeline import (
    COMMITTED_FIRST,
    PAID_TYPES,
    Bridge,
    Cursor,
    Disposition,
    ReplayResult,
    ReplayStep,
    entry_order,
)
from projections.folds.progress import SPENDING_TYPES, Progress
from projections.folds.scorecard import AttemptTotals, Scorecard, scorecard

NO_ENTRY = (-1, -1)


class EvaluationRow(NamedTuple):
    """The row of an evaluation, with its cursor."""

    evaluation_id: str
    batch_id: str
    month: date
    cursor: Cursor
    owner: str | None = None
    bridged: bool = False
    head: str | None = None


class StoredEvent(NamedTuple):
    """A stored event."""

    body: bytes
    verdict: str


class EventRow(NamedTuple):
    """One row of `events`, in the order of its columns."""

    month: date
    evaluation_id: str
    attempt: int
    sequence: int
    type: str
    verdict: str
    occurred_at: datetime
    entry_id: str
    event: bytes


class QuarantineRow(NamedTuple):
    """One row of `quarantine`, in the order of its columns."""

    id: str
    evaluation_id: str | None
    reason: str
    detail: str
    entry_id: str
    body: bytes


def quarantine_row(evaluation_id: str | None, refused: RejectedEntry) -> QuarantineRow:
    """Make the row of a rejected entry; its id is a digest of the content: the insert is idempotent."""
    digest = sha256(repr((evaluation_id, refused.reason.value)).encode() + refused.body).hexdigest()
    return QuarantineRow(
        digest[:32],
        evaluation_id,
        refused.reason.value,
        refused.detail.replace("\0", "\N{REPLACEMENT CHARACTER}"),
        refused.id.decode(),
        refused.body,
    )


@dataclass(slots=True)
class Change:
    """All rows to write for one evaluation in one transaction (transactional projection)."""

    evaluation_id: str
    batch_id: str
    month: date
    shard: int
    before: Cursor | None
    """The expected cursor of the compare-and-set; None where no row may exist."""
    after: Cursor
    owner: str | None
    bridged: bool
    head: str | None
    ended_at: datetime | None = None
    events: list[EventRow] = field(default_factory=list)
    side_events: list[EventRow] = field(default_factory=list)
    bridges: list[Bridge] = field(default_factory=list)
    scorecard: Scorecard | None = None
    ending: Event | None = None
    """The event that the scorecard was folded from."""
    reopened: bool = False
    reordered: int = 0
    """Events that arrived before one with a lower sequence."""
    quarantined: list[QuarantineRow] = field(default_factory=list)
    progress: Progress = field(default_factory=Progress)
    totals: AttemptTotals = field(default_factory=AttemptTotals)
    """Applied answer and scores of the newest attempt."""
    side_progress: dict[EventKey, Progress] = field(default_factory=dict)
    """Counters of side events: each is added only by the transaction that inserts the event."""

    @property
    def moves(self) -> bool:
        """Whether the evaluation's row is created or moved."""
        return self.before != self.after

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to write."""
        return not (self.moves or self.side_events or self.quarantined)


def fold(
    row: EvaluationRow,
    shard: int,
    walked: ReplayResult,
    *,
    exists: bool,
    totals: AttemptTotals | None = None,
) -> Change:
    """Fold a replay into the change it makes to the tables; `totals` are those of the row's attempt."""
    key, batch_id, month, cursor, owner, bridged, head = row
    before = cursor if exists else None
    change = Change(key, batch_id, month, shard, before, walked.cursor, owner, bridged, head)
    change.totals = totals or change.totals
    change.progress.total = 0 if exists else 1
    change.progress.bridged = len(walked.bridges)
    change.bridges = walked.bridges
    phase = cursor.phase
    newest = entry_order(head.encode()) if head else NO_ENTRY
    for step in walked.steps:
        if step.moved:
            _take(change, step, before=phase)
            phase = step.phase
            order = entry_order(step.entry.id)
            if order > newest:
                newest = order
            elif newest[1] < COMMITTED_FIRST:  # otherwise the id has the time of another clock
                change.reordered += 1
        else:
            _take_aside(change, step)
        if step.disposition is Disposition.REJECTED:
            change.quarantined.append(_illegal(step))
    if newest > NO_ENTRY:
        change.head = "{}-{}".format(*newest)
    return change


def _take(change: Change, step: ReplayStep, *, before: Phase) -> None:
    """Fold an event that moved the cursor."""
    event = step.entry.event
    change.events.append(_event_row(change.month, step))
    if event.type in SPENDING_TYPES:
        change.progress.add_spending(step, before=before)
    if step.disposition is not Disposition.APPLIED:
        return
    if event.type in PAID_TYPES:
        change.totals.add(event)
    if event.sequence == 0:
        _open_attempt(change, event, before)
    elif isinstance(event.data, p.Provisioning):
        change.owner = event.data.executor
    if step.phase in CLOSED:
        # Also where another attempt follows: it identifies a late original.
        change.bridged = any(bridge.closing is step.entry for bridge in change.bridges)
    if step.phase in ENDED:
        _end(change, step)


def _open_attempt(change: Change, event: Event, before: Phase) -> None:
    change.owner, change.bridged, change.totals = None, False, AttemptTotals()
    change.progress.retried += event.attempt > 1 and _tries_again(event)
    if before in ENDED:
        change.progress.remove_ending(before)
        change.reopened, change.scorecard, change.ending, change.ended_at = True, None, None, None


def _tries_again(event: Event) -> bool:
    """Whether an attempt is a retry: not if it scores an arrived answer, nor after one that never ran."""
    opening = event.data
    return (
        isinstance(opening, p.Queued)
        and opening.reason is not p.OpeningReason.SCORING
        and not opening.resumed
    )


def _end(change: Change, step: ReplayStep) -> None:
    _, event, body = step.entry
    change.scorecard = scorecard(event, bridged=change.bridged, body=body, totals=change.totals)
    change.ending, change.ended_at = event, event.occurred_at
    change.progress.add_ending(change.scorecard)


def _take_aside(change: Change, step: ReplayStep) -> None:
    """Fold an event that did not move the cursor: stale, late or rejected."""
    change.side_events.append(_event_row(change.month, step))
    spending = Progress()
    spending.add_spending(step, before=step.phase)
    if spending:
        change.side_progress[step.entry.key] = spending


def _event_row(month: date, step: ReplayStep) -> EventRow:
    entry_id, event, body = step.entry
    return EventRow(
        month,
        event.evaluation_id,
        event.attempt,
        event.sequence,
        event.type,
        step.disposition,
        event.occurred_at,
        entry_id.decode(),
        body,
    )


def _illegal(step: ReplayStep) -> QuarantineRow:
    entry_id, event, body = step.entry
    return quarantine_row(
        event.evaluation_id, RejectedEntry(entry_id, QuarantineReason.ILLEGAL, step.detail, body)
    )
