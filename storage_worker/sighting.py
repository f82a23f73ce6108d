"""One look at one evaluation: its stream against its row, and what that comes to. Pure.

A stream is read whole each time, and most of it is known already. `sight` leaves out what the row
covers without decoding it, as long as the stream is the one that was read before: then it still holds
the newest entry that was applied (the row's `head`), and nothing covered is newer. A stream written
anew (Redis was lost), one with older attempts in it, or one whose gap was bridged is compared with
what Postgres has, event by event.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date

from eventlog import payloads as p
from eventlog.codec import Entry, QuarantineReason, RawEntry, RejectedEntry, decode_body, read_entry
from eventlog.events import EventKey
from eventlog.lifecycle import CLOSED, Phase
from eventlog.timeline import Cursor, Disposition, Gap, entry_order, replay
from projections.folds.attempt_totals import AttemptTotals, left_out
from projections.folds.change import Change, EvaluationRow, QuarantineRow, StoredEvent, fold, quarantine_row

MAX_ENTRIES = 5_000
"""Entries read of one stream; no honest evaluation comes near it."""
MAX_DIGITS = 10
USUAL_FIELDS = [b"attempt", b"sequence", b"type", b"event"]


@dataclass(slots=True)
class Sighting:
    """What a look at a stream found, beyond what the row covers."""

    evaluation_id: str
    row: EvaluationRow | None
    entries: list[Entry] = field(default_factory=list)
    refused: list[RejectedEntry] = field(default_factory=list)
    must_compare: bool = False
    """Whether Postgres must be asked which of the entries it has."""
    needs_totals: bool = False
    """Whether a `completed` leaves out what the row's attempt has on record."""

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
    orphans: list[QuarantineRow] = field(default_factory=list)
    """What was refused of an evaluation that has no row."""
    gap: Gap | None = None
    duplicates: int = 0


def sight(evaluation_id: str, raw: Sequence[RawEntry], row: EvaluationRow | None) -> Sighting:
    """Read a stream against its row."""
    seen = Sighting(evaluation_id, row)
    if len(raw) > MAX_ENTRIES:
        detail = f"more than {MAX_ENTRIES} entries; those beyond were not read"
        seen.refused.append(RejectedEntry(raw[MAX_ENTRIES][0], QuarantineReason.OVERLONG, detail, b""))
        raw = raw[:MAX_ENTRIES]
    batch_id = seen.batch_id
    for entry in _uncovered(seen, raw) if row else raw:
        read = read_entry(evaluation_id, entry)
        if isinstance(read, RejectedEntry):
            seen.refused.append(read)
        elif read.event.batch_id != (batch_id := batch_id or read.event.batch_id):
            detail = f"names batch {read.event.batch_id!r}, the evaluation is of {batch_id!r}"
            seen.refused.append(RejectedEntry(read.id, QuarantineReason.MISMATCH, detail, read.body))
        else:
            seen.entries.append(read)
            seen.needs_totals = seen.needs_totals or _leaves_out(read, row)
    return seen


def _leaves_out(entry: Entry, row: EvaluationRow | None) -> bool:
    """Whether a scorecard needs events of this attempt that were applied before."""
    if row is None or row.cursor.phase is not Phase.RESPONDED or entry.event.attempt != row.cursor.attempt:
        return False
    result = entry.event.data
    return isinstance(result, p.Completed) and bool(left_out(result, entry.body))


def _uncovered(seen: Sighting, raw: Sequence[RawEntry]) -> Sequence[RawEntry]:
    """Leave out what the row covers, unless something about the stream is not as it was left."""
    row = seen.row
    assert row is not None  # noqa: S101 - asked only where there is a row
    attempt, sequence, _ = row.cursor
    covered: dict[int, Sequence[bytes]] = {}
    rest: list[RawEntry] = []
    same_stream = row.head is None or sequence < 0
    head = (row.head or "").encode()
    for entry_id, fields in raw:
        same_stream = same_stream or entry_id == head
        key = _key(fields)
        new = bool(head) and entry_order(entry_id) > entry_order(head)
        if key is None or key > (attempt, sequence):
            rest.append((entry_id, fields))
            # A higher attempt's opening may have been refused before, and be gone: Postgres knows.
            seen.must_compare = seen.must_compare or (key is not None and key[0] > attempt)
        elif key[0] < attempt or covered.setdefault(key[1], fields) != fields:
            seen.must_compare = True
        elif new and covered[key[1]] is fields:
            seen.must_compare = True  # covered, yet it came after all that was ever applied
    seen.must_compare = seen.must_compare or row.bridged or (bool(covered) and not same_stream)
    return raw if seen.must_compare else rest


def _key(fields: Sequence[bytes]) -> EventKey | None:
    """Read a key off the wire fields without decoding; None where the entry is sure to be refused."""
    if fields[::2] == USUAL_FIELDS:
        attempt, sequence = _number(fields[1]), _number(fields[3])
    else:
        named = dict(zip(fields[::2], fields[1::2], strict=False))
        attempt, sequence = _number(named.get(b"attempt", b"")), _number(named.get(b"sequence", b""))
    return None if attempt is None or sequence is None else (attempt, sequence)


def _number(text: bytes) -> int | None:
    """Read a plain number; `-1`, `01` and `1_0` contradict any envelope, and must not pass for covered."""
    plain = text.isdigit() and len(text) < MAX_DIGITS and (text == b"0" or not text.startswith(b"0"))
    return int(text) if plain else None


def resolve(
    seen: Sighting,
    *,
    shard: int,
    month: date | None,
    stored: Mapping[EventKey, StoredEvent],
    bridge_until_ms: int,
) -> Resolution:
    """Say what a sighting changes, given what Postgres already has of it."""
    entries = _not_stored(seen, stored) if seen.must_compare else seen.entries
    row = seen.row
    if row is None and month is not None and seen.batch_id is not None:
        row = EvaluationRow(seen.evaluation_id, seen.batch_id, month, Cursor())
    if row is None:
        return Resolution(None, [quarantine_row(seen.evaluation_id, bad) for bad in seen.refused])
    refused = frozenset(
        a for (a, s), known in stored.items() if s == 0 and known.verdict == Disposition.REJECTED
    )
    walked = replay(row.cursor, entries, bridge_until_ms=bridge_until_ms, refused_attempts=refused)
    totals = _totals(row.cursor, stored) if seen.needs_totals else None
    change = fold(row, shard, walked, exists=seen.row is not None, totals=totals)
    seen.refused += (_conflict(entry) for entry in walked.conflicts)
    change.quarantined += (quarantine_row(seen.evaluation_id, bad) for bad in seen.refused)
    return Resolution(change, gap=walked.gap, duplicates=walked.duplicates)


def _totals(cursor: Cursor, stored: Mapping[EventKey, StoredEvent]) -> AttemptTotals:
    """Add up what the row's attempt has on record, as far as the row covers it."""
    totals = AttemptTotals()
    for key, known in sorted(stored.items()):
        if key[0] == cursor.attempt and key[1] <= cursor.sequence and known.verdict == Disposition.APPLIED:
            totals.add(decode_body(known.body))
    return totals


def _not_stored(seen: Sighting, stored: Mapping[EventKey, StoredEvent]) -> list[Entry]:
    fresh = []
    for entry in seen.entries:
        known = stored.get(entry.key)
        if known is None or (seen.row and _is_ahead(seen.row, entry.key, known)):
            fresh.append(entry)
        elif known.body != entry.body and decode_body(known.body) != entry.event:
            seen.refused.append(_conflict(entry))
    return fresh


def _is_ahead(row: EvaluationRow, key: EventKey, known: StoredEvent) -> bool:
    """Whether another worker has stored this since the row was read.

    To leave it out would make a gap of it, and what follows would be taken to wait. It is kept, so that
    the compare-and-set finds the row moved, and the evaluation is read again.
    """
    attempt, sequence, phase = row.cursor
    if key[0] == attempt:
        return key[1] > sequence and phase not in CLOSED
    return key[0] > attempt and known.verdict == Disposition.APPLIED


def _conflict(entry: Entry) -> RejectedEntry:
    event = entry.event
    detail = f"attempt {event.attempt}, sequence {event.sequence} is known with another body"
    return RejectedEntry(entry.id, QuarantineReason.CONFLICT, detail, entry.body)
