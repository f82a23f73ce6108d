"""The lines of a history: each entry that arrived, what became of it, and how it compares. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from eventlog.codec import Entry
from eventlog.events import Event, EventKey
from eventlog.lifecycle import Phase
from eventlog.timeline import entry_order


class EntryDisposition(StrEnum):
    """What became of an entry."""

    APPLIED = "applied"
    STALE = "stale"
    LATE = "late"
    REJECTED = "rejected"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    WAITING = "waiting"
    """Beyond a gap."""
    UNSTORABLE = "unstorable"


REPEATS = frozenset({EntryDisposition.DUPLICATE, EntryDisposition.CONFLICT})
"""Entries whose key another entry had taken before."""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """One readable entry."""

    entry: Entry
    disposition: EntryDisposition
    phase: Phase | None = None
    """The state after it; None where it changed nothing."""
    pending: bool = False
    """In the stream, and not in Postgres yet."""
    note: str = ""
    recorded_at: datetime | None = None
    """When Postgres recorded it."""
    rank: int = 0
    """Its place in order of arrival, from 1."""
    since: timedelta | None = None
    """Time since the event before it, on the writers' clocks."""
    overtaken_by: EventKey | None = None
    """The nearest successor that arrived before it."""

    @property
    def event(self) -> Event:
        """The event that arrived."""
        return self.entry.event

    @property
    def key(self) -> EventKey:
        """The event's place in its evaluation."""
        return self.entry.key

    @property
    def entry_id(self) -> bytes:
        """Where it arrived."""
        return self.entry.id

    @property
    def arrived_at(self) -> datetime:
        """When it arrived, on the log's clock."""
        return arrival_time(self.entry.id)


@dataclass(frozen=True, slots=True)
class RejectedTimelineEntry:
    """An entry of the quarantine, or one that will be there."""

    reason: str
    detail: str
    entry_id: bytes
    size: int
    body: bytes
    id: str = ""
    quarantined_at: datetime | None = None
    rank: int = 0

    @property
    def arrived_at(self) -> datetime:
        """When it arrived, on the log's clock."""
        return arrival_time(self.entry_id)


def arrival_order(entry_id: bytes) -> tuple[int, int]:
    """Turn an entry's id into what sorts like it; what never was in a stream comes first."""
    try:
        return entry_order(entry_id)
    except ValueError:
        return (0, 0)


def arrival_time(entry_id: bytes) -> datetime:
    """Read the time of arrival out of an entry's id."""
    return datetime.fromtimestamp(arrival_order(entry_id)[0] / 1000, UTC)


def ranked(
    lines: Sequence[TimelineEntry], refusals: Sequence[RejectedTimelineEntry]
) -> tuple[list[TimelineEntry], list[RejectedTimelineEntry]]:
    """Number all entries in order of arrival."""
    ids = {one.entry_id for one in lines} | {one.entry_id for one in refusals}
    rank = {key: place for place, key in enumerate(sorted(ids, key=arrival_order), start=1)}
    return (
        [replace(line, rank=rank[line.entry_id]) for line in lines],
        [replace(refusal, rank=rank[refusal.entry_id]) for refusal in refusals],
    )


def in_order(lines: Iterable[TimelineEntry]) -> tuple[TimelineEntry, ...]:
    """Sort lines by attempt and sequence, and compare each with its neighbours."""
    ordered = sorted(lines, key=lambda line: (line.key, line.disposition in REPEATS, line.rank))
    return tuple(_overtaken(_timed(ordered)))


def _timed(ordered: Sequence[TimelineEntry]) -> list[TimelineEntry]:
    timed: list[TimelineEntry] = []
    before: Event | None = None
    for line in ordered:
        if line.disposition in REPEATS:
            timed.append(replace(line, since=None))
            continue
        since = line.event.occurred_at - before.occurred_at if before else None
        timed.append(replace(line, since=since))
        before = line.event
    return timed


def _overtaken(ordered: Sequence[TimelineEntry]) -> list[TimelineEntry]:
    """Name the nearest successor that arrived before each line: one walk backwards, with a stack."""
    told: list[TimelineEntry] = []
    earlier: list[TimelineEntry] = []
    for line in reversed(ordered):
        if line.disposition in REPEATS:
            told.append(replace(line, overtaken_by=None))
            continue
        while earlier and earlier[-1].rank >= line.rank:
            earlier.pop()
        told.append(replace(line, overtaken_by=earlier[-1].key if earlier else None))
        earlier.append(line)
    return told[::-1]
