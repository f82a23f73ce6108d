"""The diff of one evaluation's stream against its row: what is new, and what that changes. Pure.

A stream is read whole each time, and most of it is applied already. `diff_stream` leaves out what the row
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
from projections.folds.change import Change, EvaluationRow, QuarantineRow, StoredEvent, fold, quarantine_row
from projections.folds.scorecard import AttemptTotals, left_out

MAX_ENTRIES = 5_000
"""Entries read of one stream; no honest evaluation comes near it."""
MAX_DIGITS = 10
USUAL_FIELDS = [b"attempt", b"sequence", b"type", b"event"]


@dataclass(slots=True)
class StreamDiff:
    """The entries of a stream beyond what the row covers."""

    evaluation_id: str
    row: EvaluationRow | None
    entries: list[Entry] = field(default_factory=list)
    rejected: list[RejectedEntry] = field(default_factory=list)
    needs_comparison: bool = False
    """Whether the entries must be compared with those that Postgres has."""
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
    """The change that a diff makes, and what could not become part of it."""

    change: Change | None
    orphans: list[QuarantineRow] = field(default_factory=list)
    """Rejected entries of an evaluation that has no row."""
    gap: Gap | None = None
    duplicates: int = 0


def diff_stream(evaluation_id: str, raw: Sequence[RawEntry], row: EvaluationRow | None) -> StreamDiff:
    """Read a stream against its row."""
    diff = StreamDiff(evaluation_id, row)
    if len(raw) > MAX_ENTRIES:
        detail = f"more than {MAX_ENTRIES} entries; those beyond were not read"
        diff.rejected.append(RejectedEntry(raw[MAX_ENTRIES][0], QuarantineReason.OVERLONG, detail, b""))
        raw = raw[:MAX_ENTRIES]
    batch_id = diff.batch_id
    for entry in _unapplied(diff, raw) if row else raw:
        read = read_entry(evaluation_id, entry)
        if isinstance(read, RejectedEntry):
            diff.rejected.append(read)
        elif read.event.batch_id != (batch_id := batch_id or read.event.batch_id):
            detail = f"names batch {read.event.batch_id!r}, the evaluation is of {batch_id!r}"
            diff.rejected.append(RejectedEntry(read.id, QuarantineReason.MISMATCH, detail, read.body))
        else:
            diff.entries.append(read)
            diff.needs_totals = diff.needs_totals or _needs_totals(read, row)
    return diff


def _needs_totals(entry: Entry, row: EvaluationRow | None) -> bool:
    """Whether a scorecard needs events of this attempt that were applied before."""
    if row is None or row.cursor.phase is not Phase.RESPONDED or entry.event.attempt != row.cursor.attempt:
        return False
    result = entry.event.data
    return isinstance(result, p.Completed) and bool(left_out(result, entry.body))


def _unapplied(diff: StreamDiff, raw: Sequence[RawEntry]) -> Sequence[RawEntry]:
    """Leave out what the row covers, unless something about the stream is not as it was left."""
    row = diff.row
    assert row is not None  # noqa: S101 - called only where there is a row
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
            # A higher attempt's opening may have been rejected before, and be gone: Postgres knows.
            diff.needs_comparison = diff.needs_comparison or (key is not None and key[0] > attempt)
        elif key[0] < attempt or covered.setdefault(key[1], fields) != fields:
            diff.needs_comparison = True
        elif new and covered[key[1]] is fields:
            diff.needs_comparison = True  # covered, yet it came after all that was ever applied
    diff.needs_comparison = diff.needs_comparison or row.bridged or (bool(covered) and not same_stream)
    return raw if diff.needs_comparison else rest


def _key(fields: Sequence[bytes]) -> EventKey | None:
    """Read a key off the wire fields without decoding; None where the entry is sure to be rejected."""
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
    diff: StreamDiff,
    *,
    shard: int,
    months: Mapping[str, date],
    stored: Mapping[EventKey, StoredEvent],
    bridge_until_ms: int,
) -> Resolution:
    """Replay a diff from the row's cursor, given what Postgres already has of the entries."""
    entries = _not_stored(diff, stored) if diff.needs_comparison else diff.entries
    row = diff.row or _new_row(diff, months)
    if row is None:
        return Resolution(None, [quarantine_row(diff.evaluation_id, each) for each in diff.rejected])
    rejected_attempts = frozenset(
        a for (a, s), known in stored.items() if s == 0 and known.verdict == Disposition.REJECTED
    )
    result = replay(
        row.cursor, entries, bridge_until_ms=bridge_until_ms, rejected_attempts=rejected_attempts
    )
    totals = _totals(row.cursor, stored) if diff.needs_totals else None
    change = fold(row, shard, result, exists=diff.row is not None, totals=totals)
    diff.rejected += (_conflict(entry) for entry in result.conflicts)
    change.quarantined += (quarantine_row(diff.evaluation_id, each) for each in diff.rejected)
    return Resolution(change, gap=result.gap, duplicates=result.duplicates)


def _new_row(diff: StreamDiff, months: Mapping[str, date]) -> EvaluationRow | None:
    """Make the row of an evaluation that has none yet; None where no event names its batch."""
    batch_id = diff.batch_id
    if batch_id is None or batch_id not in months:
        return None
    return EvaluationRow(diff.evaluation_id, batch_id, months[batch_id], Cursor())


def _totals(cursor: Cursor, stored: Mapping[EventKey, StoredEvent]) -> AttemptTotals:
    """Add up what the row's attempt has on record, as far as the row covers it."""
    totals = AttemptTotals()
    for key, known in sorted(stored.items()):
        if key[0] == cursor.attempt and key[1] <= cursor.sequence and known.verdict == Disposition.APPLIED:
            totals.add(decode_body(known.body))
    return totals


def _not_stored(diff: StreamDiff, stored: Mapping[EventKey, StoredEvent]) -> list[Entry]:
    fresh = []
    for entry in diff.entries:
        known = stored.get(entry.key)
        if known is None or (diff.row and _is_ahead(diff.row, entry.key, known)):
            fresh.append(entry)
        elif known.body != entry.body and decode_body(known.body) != entry.event:
            diff.rejected.append(_conflict(entry))
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
