"""The entries of a history: disposition, arrival rank, and time since the previous event. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from eventlog.codec import Entry
from eventlog.events import Event, EventKey
from eventlog.lifecycle import Phase
from eventlog.timeline import entry_order


class EntryDisposition(StrEnum):
    """The disposition of an entry."""

    APPLIED = "applied"
    STALE = "stale"
    LATE = "late"
    REJECTED = "rejected"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    WAITING = "waiting"
    """The entry is beyond a gap."""
    UNSTORABLE = "unstorable"


REPEATS = frozenset({EntryDisposition.DUPLICATE, EntryDisposition.CONFLICT})
"""Dispositions of entries whose key an earlier entry has."""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """An entry that could be decoded."""

    entry: Entry
    disposition: EntryDisposition
    phase: Phase | None = None
    """The state after the entry; None where it changed nothing."""
    pending: bool = False
    """Whether it is in the stream, and not in Postgres yet."""
    note: str = ""
    recorded_at: datetime | None = None
    """When Postgres recorded it."""
    rank: int = 0
    """Its position in the order of arrival, from 1."""
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
        """Attempt and sequence of the event."""
        return self.entry.key

    @property
    def entry_id(self) -> bytes:
        """The id of the entry in the stream."""
        return self.entry.id

    @property
    def arrived_at(self) -> datetime:
        """When it arrived, on the log's clock."""
        return arrival_time(self.entry.id)


@dataclass(frozen=True, slots=True)
class RejectedTimelineEntry:
    """A quarantined entry, or one that will be quarantined."""

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
    """Return the sort key of an entry id; an id that is not from a stream sorts first."""
    try:
        return entry_order(entry_id)
    except ValueError:
        return (0, 0)


def arrival_time(entry_id: bytes) -> datetime:
    """Return the time of arrival from an entry id."""
    return datetime.fromtimestamp(arrival_order(entry_id)[0] / 1000, UTC)


def ranked(
    lines: Sequence[TimelineEntry], refusals: Sequence[RejectedTimelineEntry]
) -> tuple[list[TimelineEntry], list[RejectedTimelineEntry]]:
    """Return all entries with their ranks in order of arrival."""
    ids = {one.entry_id for one in lines} | {one.entry_id for one in refusals}
    rank = {key: place for place, key in enumerate(sorted(ids, key=arrival_order), start=1)}
    return (
        [replace(line, rank=rank[line.entry_id]) for line in lines],
        [replace(refusal, rank=rank[refusal.entry_id]) for refusal in refusals],
    )


def in_order(lines: Iterable[TimelineEntry]) -> tuple[TimelineEntry, ...]:
    """Return entries by attempt and sequence, with the time since the previous and the overtaking one."""
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
    """Set the nearest successor that arrived before each entry, in one pass with a monotonic stack."""
    marked: list[TimelineEntry] = []
    earlier: list[TimelineEntry] = []
    for line in reversed(ordered):
        if line.disposition in REPEATS:
            marked.append(replace(line, overtaken_by=None))
            continue
        while earlier and earlier[-1].rank >= line.rank:
            earlier.pop()
        marked.append(replace(line, overtaken_by=earlier[-1].key if earlier else None))
        earlier.append(line)
    return marked[::-1]
