"""Replay of a stream in any order of arrival: pure, total, and the same for every reader.

A stream holds entries in the order of their arrival, with duplicates, gaps and late events of attempts that
are over. `replay` starts from a `Cursor` (what a reader already has):

- the first entry of a key is the event; an equal one is a duplicate, another body a conflict;
- within an attempt, only the contiguous continuation is applied, in the order of sequences;
- sequence 0 of a higher attempt is a fence: what the older attempt had not got to by that place
  in the stream is stale, and so are its later events;
- what lies beyond a gap waits; the gap is bridged to a closing event once it is older than the limit.

Where an entry stands in the stream decides, never when a reader looked, so any number of readers
that read it in any portions come to the same result.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple

from eventlog import lifecycle as life
from eventlog.codec import Entry
from eventlog.events import Event, EventKey
from eventlog.lifecycle import Phase


class Disposition(StrEnum):
    """What a replay did with an event."""

    __hash__ = str.__hash__

    APPLIED = "applied"
    STALE = "stale"
    """Of an attempt that a higher one has replaced."""
    LATE = "late"
    """Not in its place when the gap there was bridged, or paid for when its evaluation had been ended."""
    REJECTED = "rejected"
    """In its place, and illegal there."""


PAID_TYPES = frozenset({"responded", "scored"})
"""Event types that are kept though they change nothing: they were paid for."""


class Cursor(NamedTuple):
    """How far a history has been applied."""

    attempt: int = 0
    sequence: int = -1
    phase: Phase = Phase.UNOPENED


class ReplayStep(NamedTuple):
    """One event, its disposition, the phase after it, and whether it moved the cursor."""

    entry: Entry
    disposition: Disposition
    phase: Phase
    moved: bool
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Gap:
    """Missing sequences in an attempt, with events waiting beyond them."""

    attempt: int
    missing: tuple[range, ...]
    waiting: tuple[Entry, ...]

    @property
    def since_ms(self) -> int:
        """When the oldest entry beyond the gap arrived, on the log's clock."""
        return min(arrival_ms(entry.id) for entry in self.waiting)

    @property
    def closing(self) -> Entry | None:
        """The event by which the owner closed the attempt, if it is among those waiting."""
        closing = (entry for entry in self.waiting if entry.event.type in life.OWNERS_CLOSING)
        return min(closing, key=lambda entry: entry.event.sequence, default=None)


class Bridge(NamedTuple):
    """The fact that a gap was bridged, and which sequences were missing."""

    attempt: int
    missing: tuple[range, ...]
    closing: Entry


@dataclass(slots=True)
class ReplayResult:
    """The outcome of a replay."""

    cursor: Cursor
    steps: list[ReplayStep] = field(default_factory=list)
    conflicts: list[Entry] = field(default_factory=list)
    duplicates: int = 0
    gap: Gap | None = None
    bridges: list[Bridge] = field(default_factory=list)


def entry_order(entry_id: bytes) -> tuple[int, int]:
    """Turn an entry's id into what sorts like it."""
    milliseconds, _, count = entry_id.partition(b"-")
    return int(milliseconds), int(count)


COMMITTED_FIRST = 1_000_000
"""Second half of the entry ids of events that were committed before they were in any stream."""


def committed_entry_id(at: datetime, place: int = 0) -> bytes:
    """Make an entry id for an event that is committed now, and published later."""
    return b"%d-%d" % (int(at.timestamp() * 1000), COMMITTED_FIRST + place)


def was_committed_first(entry_id: bytes) -> bool:
    """Whether an event was in Postgres before it was in any stream."""
    return entry_order(entry_id)[1] >= COMMITTED_FIRST


def arrival_ms(entry_id: bytes) -> int:
    """Read the time of arrival out of an entry's id."""
    return int(entry_id.partition(b"-")[0])


def first_of_each_key(
    entries: Iterable[Entry], repeated: list[Entry] | None = None
) -> dict[EventKey, Entry]:
    """Apply the rule of every reader: the first readable entry of a key is the event.

    Later entries of a key are added to `repeated`: duplicates, or conflicts if they differ.
    """
    first: dict[EventKey, Entry] = {}
    for entry in entries:
        if first.setdefault(entry.key, entry) is not entry and repeated is not None:
            repeated.append(entry)
    return first


def replay(
    cursor: Cursor,
    entries: Sequence[Entry],
    *,
    bridge_until_ms: int | None = None,
    rejected_attempts: frozenset[int] = frozenset(),
) -> ReplayResult:
    """Replay entries from a cursor; what the cursor already covers must not be among them.

    Gaps whose oldest waiting entry arrived at `bridge_until_ms` or before are bridged, if they can be.
    Attempts whose opening was rejected in an earlier replay stay rejected.
    """
    if not rejected_attempts and _is_plain_continuation(cursor, entries):
        return _replay_in_order(cursor, entries)
    return _Replay(cursor, entries, bridge_until_ms, rejected_attempts).run()


def _is_plain_continuation(cursor: Cursor, entries: Sequence[Entry]) -> bool:
    """Whether the entries are just the next ones, in order: nearly always so."""
    attempt, sequence, _ = cursor
    for _, event, _ in entries:
        if attempt == 0:
            attempt = event.attempt
        sequence += 1
        if event.sequence != sequence or event.attempt != attempt:
            return False
    return True


def _replay_in_order(cursor: Cursor, entries: Iterable[Entry]) -> ReplayResult:
    """Step through the transition table; only what is illegal takes the general path."""
    result = ReplayResult(cursor)
    attempt, sequence, phase = cursor
    for entry in entries:
        event = entry.event
        following = life.TRANSITIONS[phase].get(event.type) if event.sequence else None
        if following is None:
            result.cursor = Cursor(attempt, sequence, phase)
            _apply(result, entry)
            attempt, sequence, phase = result.cursor
        else:
            attempt, sequence, phase = event.attempt, event.sequence, following
            result.steps.append(ReplayStep(entry, Disposition.APPLIED, phase, True))  # noqa: FBT003 - a tuple's field
    result.cursor = Cursor(attempt, sequence, phase)
    return result


def _apply(result: ReplayResult, entry: Entry) -> None:
    """Take the next entry; an illegal one is passed over, so that what follows is not lost."""
    event = entry.event
    attempt, _, phase = result.cursor
    try:
        if event.attempt > attempt:
            following = life.reopen(phase, event.data, sequence=event.sequence)
        else:
            following = life.advance(phase, event.type, sequence=event.sequence)
    except life.IllegalTransition as illegal:
        moved = event.attempt == attempt and phase not in life.CLOSED
        in_place = moved or event.sequence == 0
        detail = str(illegal) if in_place else why_out_of_place(result.cursor, event)
        result.steps.append(ReplayStep(entry, Disposition.REJECTED, phase, moved, detail))
        if moved:
            result.cursor = Cursor(attempt, event.sequence, phase)
        return
    result.steps.append(ReplayStep(entry, Disposition.APPLIED, following, True))  # noqa: FBT003 - a tuple's field
    result.cursor = Cursor(event.attempt, event.sequence, following)


def why_out_of_place(cursor: Cursor, event: Event) -> str:
    """Return why an event that has no place is rejected, in the same words wherever it arrived.

    The phase is no reason for an event of an attempt that was not opened: lower attempts may go on.
    """
    if event.attempt > cursor.attempt:
        return f"attempt {event.attempt} was not opened"
    return f"the evaluation is {cursor.phase}"


class _Replay:
    """The general case: reordered, duplicated, fenced, or with gaps."""

    def __init__(
        self,
        cursor: Cursor,
        entries: Sequence[Entry],
        bridge_until_ms: int | None,
        rejected_attempts: frozenset[int],
    ) -> None:
        self.result = ReplayResult(cursor)
        self.bridge_until_ms = bridge_until_ms
        self.open = self._first_of_each_key(entries)
        self.place = {key: index for index, key in enumerate(self.open)}
        self.rejected_attempts = set(rejected_attempts)

    def _first_of_each_key(self, entries: Iterable[Entry]) -> dict[EventKey, Entry]:
        repeated: list[Entry] = []
        first = first_of_each_key(entries, repeated)
        for entry in repeated:
            known = first[entry.key]
            if known.body == entry.body or known.event == entry.event:
                self.result.duplicates += 1
            else:
                self.result.conflicts.append(entry)
        return first

    def run(self) -> ReplayResult:
        """Apply and judge what can be, then bridge what has waited too long."""
        self._follow_openings()
        while (gap := self._gap()) and self._may_bridge(gap):
            self._bridge(gap)
        self.result.gap = gap
        return self.result

    def _follow_openings(self) -> None:
        while opening := self._next_opening():
            self._apply_contiguous(before=self.place[opening.key])
            self._dispose_of_rest(before=self.place[opening.key])
            _apply(self.result, self.open.pop(opening.key))
            if self.result.cursor.attempt != opening.event.attempt:
                self.rejected_attempts.add(opening.event.attempt)
        self._apply_contiguous(before=len(self.place))
        self._dispose_of_rest(before=len(self.place))

    def _next_opening(self) -> Entry | None:
        """Find the first to arrive of the openings above the current attempt."""
        attempt = self.result.cursor.attempt
        return next((e for (a, sequence), e in self.open.items() if sequence == 0 and a > attempt), None)

    def _apply_contiguous(self, *, before: int) -> None:
        """Apply the attempt's next events, as far as they arrived before the fence."""
        while self.result.cursor.phase not in life.CLOSED:
            key = (self.result.cursor.attempt, self.result.cursor.sequence + 1)
            if self.place.get(key, before) >= before or key not in self.open:
                return
            _apply(self.result, self.open.pop(key))

    def _gap(self) -> Gap | None:
        """Look for events that wait, first in the current attempt, then above it."""
        attempt, sequence, phase = self.result.cursor
        if phase in life.ENDED:
            return None
        if phase not in life.CLOSED and (gap := self._gap_in(attempt, sequence + 1)):
            return gap
        higher = min((a for a, _ in self.open if a > attempt), default=None)
        return self._gap_in(higher, 0) if higher is not None else None

    def _gap_in(self, attempt: int, expected: int) -> Gap | None:
        waiting = sorted(
            (e for (a, s), e in self.open.items() if a == attempt and s >= expected),
            key=lambda entry: entry.event.sequence,
        )
        if not waiting:
            return None
        return Gap(attempt, missing_ranges(expected, [e.event.sequence for e in waiting]), tuple(waiting))

    def _may_bridge(self, gap: Gap) -> bool:
        ripe = self.bridge_until_ms is not None and gap.since_ms <= self.bridge_until_ms
        return ripe and gap.closing is not None

    def _bridge(self, gap: Gap) -> None:
        closing = gap.closing
        assert closing is not None  # noqa: S101 - _may_bridge has seen it
        event = closing.event
        del self.open[closing.key]
        missing = tuple(span for span in gap.missing if span.stop <= event.sequence)
        self.result.bridges.append(Bridge(gap.attempt, missing, closing))
        phase = Phase(event.type)
        self.result.steps.append(ReplayStep(closing, Disposition.APPLIED, phase, moved=True))
        self.result.cursor = Cursor(event.attempt, event.sequence, phase)
        self._dispose_of_rest(before=len(self.place))

    def _dispose_of_rest(self, *, before: int) -> None:
        """Judge what can't be applied any more; a reader that had stopped here would decide the same."""
        for key in sorted(self.open):
            if self.place[key] < before and not self._waits(key):
                self.result.steps.append(self._disposition_of(self.open.pop(key)))

    def _waits(self, key: EventKey) -> bool:
        attempt, sequence, phase = self.result.cursor
        if key[0] == attempt:
            return key[1] > sequence and phase not in life.CLOSED
        return key[0] > attempt and self._may_yet_open(key[0])

    def _may_yet_open(self, attempt: int) -> bool:
        """Whether a higher attempt's opening may still arrive: then its events wait, whatever they are."""
        return self.result.cursor.phase not in life.FINAL and attempt not in self.rejected_attempts

    def _disposition_of(self, entry: Entry) -> ReplayStep:
        attempt, sequence, phase = self.result.cursor
        if entry.event.attempt < attempt:
            if sequence == 0 and phase in life.ENDED and entry.event.type in PAID_TYPES:
                return ReplayStep(
                    entry, Disposition.LATE, phase, moved=False, detail=f"{phase} before it came"
                )
            return ReplayStep(
                entry, Disposition.STALE, phase, moved=False, detail=f"attempt {attempt} has replaced it"
            )
        if entry.event.attempt == attempt and entry.event.sequence < sequence:
            return ReplayStep(
                entry, Disposition.LATE, phase, moved=False, detail="the gap in its place had been bridged"
            )
        detail = why_out_of_place(self.result.cursor, entry.event)
        return ReplayStep(entry, Disposition.REJECTED, phase, moved=False, detail=detail)


def missing_ranges(expected: int, present: Sequence[int]) -> tuple[range, ...]:
    """Return the ranges that are missing before and between sorted sequences."""
    missing = []
    for sequence in present:
        if sequence > expected:
            missing.append(range(expected, sequence))
        expected = sequence + 1
    return tuple(missing)
