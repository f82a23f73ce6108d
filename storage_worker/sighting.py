"""One look at one evaluation: its stream against its row, and what that comes to. Pure.

A stream is read whole each time, and most of it is known already. `sight` leaves out what the row
covers without decoding it, as long as the stream is the one that was read before: then it still holds,
at the same id, the entry applied last (the row's `head`). A stream written anew (Redis was lost), one
with older attempts in it, or one whose gap was bridged is compared with what Postgres has, event by event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from eventlog.codec import Entry, RawEntry, Reason, Refused, decode_body, read_entry
from eventlog.events import EventKey
from eventlog.timeline import Cursor, Gap, unfold
from projections.change import Change, Quarantined, Row, fold, quarantined

MAX_ENTRIES = 5_000
"""Entries read of one stream; no honest evaluation comes near it."""


@dataclass(slots=True)
class Sighting:
    """What a look at a stream found, beyond what the row covers."""

    evaluation_id: str
    row: Row | None
    entries: list[Entry] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    must_compare: bool = False
    """Whether Postgres must be asked which of the entries it has."""

    @property
    def batch_id(self) -> str | None:
        """The batch it belongs to: the row's, or that of the first readable event."""
        if self.row:
            return self.row.batch_id
        return self.entries[0].event.batch_id if self.entries else None


@dataclass(slots=True)
class Resolution:
    """What a sighting comes to."""

    change: Change | None
    orphans: list[Quarantined] = field(default_factory=list)
    """What was refused of an evaluation that has no row."""
    gap: Gap | None = None
    duplicates: int = 0


def sight(evaluation_id: str, raw: Sequence[RawEntry], row: Row | None) -> Sighting:
    """Read a stream against its row."""
    seen = Sighting(evaluation_id, row)
    if len(raw) > MAX_ENTRIES:
        detail = f"more than {MAX_ENTRIES} entries; those beyond were not read"
        seen.refused.append(Refused(raw[MAX_ENTRIES][0], Reason.OVERLONG, detail, b""))
        raw = raw[:MAX_ENTRIES]
    batch_id = seen.batch_id
    for entry in _uncovered(seen, raw) if row else raw:
        read = read_entry(evaluation_id, entry)
        if isinstance(read, Refused):
            seen.refused.append(read)
        elif read.event.batch_id != (batch_id := batch_id or read.event.batch_id):
            detail = f"names batch {read.event.batch_id!r}, the evaluation is of {batch_id!r}"
            seen.refused.append(Refused(read.id, Reason.MISMATCH, detail, read.body))
        else:
            seen.entries.append(read)
    return seen


def _uncovered(seen: Sighting, raw: Sequence[RawEntry]) -> Sequence[RawEntry]:
    """Leave out what the row covers, unless something about the stream is not as it was left."""
    row = seen.row
    assert row is not None  # noqa: S101 - asked only where there is a row
    attempt, sequence, _ = row.cursor
    covered: dict[int, bytes] = {}
    rest: list[RawEntry] = []
    same_stream = row.head is None or sequence < 0
    head = (row.head or "").encode()
    for entry_id, fields in raw:
        same_stream = same_stream or entry_id == head
        key = _key(fields)
        if key is None or key > (attempt, sequence):
            rest.append((entry_id, fields))
        elif key[0] < attempt or covered.setdefault(key[1], fields[-1]) != fields[-1]:
            seen.must_compare = True
    seen.must_compare = seen.must_compare or row.bridged or (bool(covered) and not same_stream)
    return raw if seen.must_compare else rest


def _key(fields: Sequence[bytes]) -> EventKey | None:
    """Read a key off the wire fields in their usual order, cheaply; None sends an entry the long way."""
    if len(fields) != 8 or fields[0] != b"attempt" or fields[2] != b"sequence" or fields[6] != b"event":
        return None
    # Digits only: a sequence of -1 would pass for one that the row covers.
    if not (fields[1].isdigit() and fields[3].isdigit()):
        return None
    try:
        return int(fields[1]), int(fields[3])
    except ValueError:  # thousands of digits
        return None


def resolve(
    seen: Sighting,
    *,
    shard: int,
    month: date | None,
    stored: Mapping[EventKey, bytes],
    bridge_until_ms: int,
) -> Resolution:
    """Say what a sighting changes, given what Postgres already has of it."""
    entries = _not_stored(seen, stored) if seen.must_compare else seen.entries
    row = seen.row
    if row is None and month is not None and seen.batch_id is not None:
        row = Row(seen.evaluation_id, seen.batch_id, month, Cursor())
    if row is None:
        return Resolution(None, [quarantined(seen.evaluation_id, bad) for bad in seen.refused])
    walked = unfold(row.cursor, entries, bridge_until_ms=bridge_until_ms)
    change = fold(row, shard, walked, exists=seen.row is not None)
    seen.refused += (_conflict(entry) for entry in walked.conflicts)
    change.quarantined += (quarantined(seen.evaluation_id, bad) for bad in seen.refused)
    return Resolution(change, gap=walked.gap, duplicates=walked.duplicates)


def _not_stored(seen: Sighting, stored: Mapping[EventKey, bytes]) -> list[Entry]:
    fresh = []
    for entry in seen.entries:
        body = stored.get(entry.key)
        if body is None:
            fresh.append(entry)
        elif body != entry.body and decode_body(body) != entry.event:
            seen.refused.append(_conflict(entry))
        elif _is_refused_opening(entry, seen.row):
            fresh.append(entry)
    return fresh


def _is_refused_opening(entry: Entry, row: Row | None) -> bool:
    """Whether an opening is stored but was not taken: it says that what follows it belongs nowhere."""
    return row is not None and entry.event.sequence == 0 and entry.event.attempt > row.cursor.attempt


def _conflict(entry: Entry) -> Refused:
    event = entry.event
    detail = f"attempt {event.attempt}, sequence {event.sequence} is known with another body"
    return Refused(entry.id, Reason.CONFLICT, detail, entry.body)
