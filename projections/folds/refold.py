"""Refold of the stored log: the rows that follow from it, and whether the log itself keeps the rules.

The disposition of an event was decided once, from its position in the stream, and is stored beside it; a
bridged gap is stored too. Both are part of the log, so a refold needs no Redis and is deterministic: sorted
by attempt and sequence, the events of an evaluation fold to one row, one scorecard and one share of the
counters. The same pass checks that every stored disposition is possible.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from eventlog import lifecycle as life
from eventlog.codec import Entry, RejectedEntry, decode
from eventlog.events import Event, EventKey
from eventlog.lifecycle import IllegalTransition, Phase
from eventlog.timeline import (
    PAID_TYPES,
    Bridge,
    Cursor,
    Disposition,
    ReplayResult,
    ReplayStep,
    missing_ranges,
    why_out_of_place,
)
from projections.folds.change import Change, EvaluationRow, EventRow, fold
from projections.folds.progress import Progress

BridgedGaps = Mapping[EventKey, tuple[range, ...]]
"""Missing sequences by attempt and sequence of the closing event that bridged them."""

PHASE_AFTER = {
    word: phase
    for accepted in (life.OPENINGS, *life.TRANSITIONS.values())
    for word, phase in accepted.items()
}
"""The phase that each event type leads to."""
ENTRY_ID = re.compile(r"\d+-\d+")
VERDICTS = {verdict.value: verdict for verdict in Disposition}


@dataclass(slots=True)
class RefoldResult:
    """The change that an evaluation's log folds to, and the rules it breaks."""

    change: Change
    broken: list[str] = field(default_factory=list)

    @property
    def progress(self) -> Progress:
        """The evaluation's share of its batch's counters."""
        total = self.change.progress
        if self.change.side_progress:
            total = replace(total)
            for part in self.change.side_progress.values():
                total += part
        return total


def refold(
    row: EvaluationRow, shard: int, logged: Sequence[EventRow], bridged_gaps: BridgedGaps
) -> RefoldResult:
    """Fold an evaluation's whole log, sorted by attempt and sequence; `row` gives only its identity."""
    walk = _Refold(row, logged, bridged_gaps)
    for event_row in logged:
        walk.take(event_row)
    walk.check_whole_log()
    blank = EvaluationRow(row.evaluation_id, row.batch_id, row.month, Cursor())
    return RefoldResult(fold(blank, shard, walk.walked, exists=False), walk.broken)


class _Refold:
    """The state of one refold: cursor, steps, and broken rules."""

    def __init__(self, row: EvaluationRow, logged: Sequence[EventRow], bridged_gaps: BridgedGaps) -> None:
        self.row = row
        self.bridged_gaps = bridged_gaps
        self.walked = ReplayResult(Cursor())
        self.broken: list[str] = []
        self.verdicts: dict[EventKey, Disposition] = {}
        self.bridged_to = _bridged_to(logged, bridged_gaps) if bridged_gaps else {}
        self._paid_late: list[Event] = []
        self._ended_by: set[int] = set()
        """Attempts that were opened only to end the evaluation."""

    def take(self, logged: EventRow) -> None:
        """Fold the next event and check that its stored disposition is possible."""
        entry = self._read(logged)
        if entry is None:
            return
        verdict = self.verdicts[entry.key] = VERDICTS[logged.verdict]
        if verdict is Disposition.APPLIED:
            self._apply(entry)
        elif verdict is Disposition.REJECTED:
            self._reject(entry)
        elif verdict is Disposition.LATE:
            self._set_aside(entry, verdict, self._phase_after_bridge(entry.event))
        else:
            self._set_aside(entry, verdict, self.walked.cursor.phase)

    def _read(self, logged: EventRow) -> Entry | None:
        """Decode an event, and compare its columns with its body."""
        month, evaluation_id, attempt, sequence, event_type, _, occurred_at, entry_id, body = logged
        entry = decode(entry_id.encode(), body)
        if not ENTRY_ID.fullmatch(entry_id):
            self.broken.append(f"{attempt}/{sequence} arrived nowhere: its entry is {entry_id!r}")
            return None
        if isinstance(entry, RejectedEntry):
            self.broken.append(f"{attempt}/{sequence} can't be read: {entry.reason}: {entry.detail}")
            return None
        event = entry.event
        if not (
            event.type == event_type
            and event.sequence == sequence
            and event.attempt == attempt
            and event.evaluation_id == evaluation_id
            and event.occurred_at == occurred_at
            and event.batch_id == self.row.batch_id
            and month == self.row.month
        ):
            self._contradicts(event, logged)
        return entry

    def _contradicts(self, event: Event, logged: EventRow) -> None:
        row = self.row
        body = (row.month, event.evaluation_id, *event.key, event.type, event.occurred_at, event.batch_id)
        kept = (*logged[:5], logged.occurred_at, row.batch_id)
        contradictions = (f"{a} but {b}" for a, b in zip(kept, body, strict=True) if a != b)
        self._break_rule(event, f"differs from its row: {'; '.join(contradictions)}")

    def _apply(self, entry: Entry) -> None:
        event = entry.event
        attempt, sequence, phase = self.walked.cursor
        if event.attempt == attempt and event.sequence == sequence + 1:
            following = self._legal(event, life.TRANSITIONS[phase].get(event.type))
        elif event.key in self.bridged_gaps:
            following = self._cross(entry)
        else:
            following = self._open(event)
        if following is None:
            return
        self.walked.steps.append(ReplayStep(entry, Disposition.APPLIED, following, moved=True))
        self.walked.cursor = Cursor(event.attempt, event.sequence, following)

    def _legal(self, event: Event, following: Phase | None) -> Phase | None:
        """Return the phase of a legal transition; an illegal one is a broken rule."""
        if following is None:
            phase = self.walked.cursor.phase
            self._break_rule(event, f"was applied, but {phase} does not accept {event.type} there")
        return following

    def _open(self, event: Event) -> Phase | None:
        attempt, sequence, phase = self.walked.cursor
        if event.sequence > 0 or event.attempt <= attempt:
            after = f"{attempt}/{sequence}" if attempt else "nothing"
            self._break_rule(event, f"was applied next after {after}, and no bridge leads there")
            # An opening that is out of place opens nothing: the attempt may have ended.
            return PHASE_AFTER.get(event.type, phase) if event.sequence else None
        if event.type != "queued":
            self._ended_by.add(event.attempt)
        try:
            return life.reopen(phase, event.data, sequence=event.sequence)
        except IllegalTransition:
            return self._legal(event, None)

    def _cross(self, entry: Entry) -> Phase:
        event = entry.event
        attempt, sequence, phase = self.walked.cursor
        missing = self.bridged_gaps[event.key]
        first = sequence + 1 if event.attempt == attempt else 0
        present = [s for (a, s) in self.verdicts if a == event.attempt and s >= first]
        for hole in missing_ranges(first, [*present, event.sequence]):
            if not any(hole.start >= named.start and hole.stop <= named.stop for named in missing):
                self._break_rule(event, f"was bridged to, but the bridge does not name {_named(hole)}")
        if event.type not in life.OWNERS_CLOSING or phase in life.ENDED:
            self._break_rule(event, f"was bridged to, but can't close what is {phase}")
        self.walked.bridges.append(Bridge(event.attempt, missing, entry))
        return PHASE_AFTER.get(event.type, phase)

    def _reject(self, entry: Entry) -> None:
        event = entry.event
        attempt, sequence, phase = self.walked.cursor
        in_place = event.attempt == attempt and phase not in life.CLOSED
        if in_place:
            if event.sequence != sequence + 1:
                self._break_rule(
                    event, f"was rejected next after {attempt}/{sequence}, and not in its place"
                )
            elif event.type in life.TRANSITIONS[phase]:
                self._break_rule(event, f"was rejected, but {phase} accepts {event.type}")
            self.walked.cursor = Cursor(attempt, event.sequence, phase)
        # An opening is not checked: a lower attempt may have been opened since it was rejected.
        detail = _why_rejected(Cursor(attempt, sequence, phase), event, in_place=in_place)
        self.walked.steps.append(ReplayStep(entry, Disposition.REJECTED, phase, in_place, detail))

    def _set_aside(self, entry: Entry, verdict: Disposition, phase: Phase) -> None:
        self.walked.steps.append(ReplayStep(entry, verdict, phase, moved=False))

    def _phase_after_bridge(self, event: Event) -> Phase:
        """Return the phase of a late event: the one that the bridge over its sequence led to."""
        closing = self.bridged_to.get(event.attempt)
        if closing is None:
            self._paid_late.append(event)
            return self.walked.cursor.phase
        return PHASE_AFTER.get(closing, self.walked.cursor.phase)

    def check_whole_log(self) -> None:
        """Check the rules that need the whole log."""
        newest = self.walked.cursor.attempt
        for event in self._paid_late:
            if event.type not in PAID_TYPES or event.attempt >= max(self._ended_by, default=0):
                self._break_rule(event, "is late, but nothing was bridged in its attempt")
        for (attempt, sequence), verdict in self.verdicts.items():
            if verdict is Disposition.STALE and attempt >= newest:
                self.broken.append(
                    f"{attempt}/{sequence} is stale, but no attempt above {attempt} was opened"
                )
        for (attempt, closing), missing in self.bridged_gaps.items():
            if self.verdicts.get((attempt, closing)) is not Disposition.APPLIED:
                self.broken.append(f"a bridge leads to {attempt}/{closing}, which was not applied")
            for (a, sequence), verdict in self.verdicts.items():
                swallowed = a == attempt and any(sequence in hole for hole in missing)
                if swallowed and verdict is Disposition.APPLIED:
                    self.broken.append(f"{a}/{sequence} was applied, but a bridge calls it missing")

    def _break_rule(self, event: Event, what: str) -> None:
        self.broken.append(f"{event.attempt}/{event.sequence} {event.type} {what}")


def _bridged_to(logged: Sequence[EventRow], bridged_gaps: BridgedGaps) -> dict[int, str]:
    """Return the type of the closing event of each bridge, by attempt."""
    return {each.attempt: each.type for each in logged if (each.attempt, each.sequence) in bridged_gaps}


def _why_rejected(cursor: Cursor, event: Event, *, in_place: bool) -> str:
    """Return the reason for which a storage worker rejected the event."""
    try:
        if event.attempt > cursor.attempt and event.sequence == 0:
            life.reopen(cursor.phase, event.data, sequence=event.sequence)
        elif in_place:
            life.advance(cursor.phase, event.type, sequence=event.sequence)
    except IllegalTransition as illegal:
        return str(illegal)
    return why_out_of_place(cursor, event)


def _named(hole: range) -> str:
    return f"{hole.start}" if len(hole) == 1 else f"{hole.start}-{hole.stop - 1}"
