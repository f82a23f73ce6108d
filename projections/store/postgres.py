"""The transactional projection in PostgreSQL: binary array reads, one transaction a commit.

The compare-and-set comes first. The worker that wins it owns the keys that follow, so events go straight
into their partition; the unique key of `events` is the second line of defence.

Many changes are written by COPY, which takes least time for each row and ten round trips. A few are
written by one statement, and committed in two round trips: what has just arrived is stored at once.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from struct import Struct
from typing import Any

from psycopg_pool import AsyncConnectionPool

from eventlog.events import EventKey
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from projections.database.connection import RETRIED, Connection, single_statement, transaction
from projections.folds.change import Change, EvaluationRow, EventRow, QuarantineRow, StoredEvent
from projections.folds.progress import Progress, counters_of
from projections.sql import query
from projections.store.binary_arrays import binary_array, binary_columns
from projections.store.contract import CommitResult

MAX_KNOWN_BATCHES = 10_000
FEW = 256
"""Changes up to which round trips cost more than rows."""
STAGED_TYPES = (
    *("text", "text", "date", "int2", "int4", "int4", "int4", "int4", "text", "text", "bool", "text"),
    *("timestamptz", "text", "text", "float8", "bytea", "int8", "numeric", "float8", "int8", "bytea"),
)
"""Wire types of the COPY; JSON is sent as the bytes of its text."""
FEW_TYPES = tuple("text" if type_ == "numeric" else type_ for type_ in STAGED_TYPES)
EVENT_TYPES = ("date", "text", "int4", "int4", "text", "text", "timestamptz", "text", "bytea")
PROGRESS_TYPES = ("text", "int2", *("int8",) * 9, "text", "int8", "text")
_NO_ROW = (None, None)
_NO_CARD = (None,) * 9

_HEADER = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_TRAILER = b"\xff\xff"
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_FIRST_DAY = date(2000, 1, 1)
_month = Struct(">hii").pack  # nine columns; four bytes of days since 2000
_numbers = Struct(">iiii").pack
_time = Struct(">iq").pack
_length = Struct(">i").pack


class PostgresStore:
    """`Tables` on a PostgreSQL server."""

    def __init__(self, pool: AsyncConnectionPool, *, few: int = FEW) -> None:
        self._pool = pool
        self._few = few
        self._months: dict[str, date] = {}

    async def months(self, batch_ids: Sequence[str]) -> Mapping[str, date]:
        known = {batch_id: self._months[batch_id] for batch_id in batch_ids if batch_id in self._months}
        unknown = sorted(set(batch_ids) - known.keys())
        if not unknown:
            return known
        async with transaction(self._pool) as conn:
            await conn.execute(query("insert_external_batches"), [unknown])
            cursor = await conn.execute(query("read_batch_months"), [unknown])
            found = {batch_id: month for batch_id, month, _ in await cursor.fetchall()}
        # Cached only after the commit: a month without its partition could not be written to.
        if len(self._months) > MAX_KNOWN_BATCHES:
            self._months.clear()
        self._months |= found
        return known | found

    async def rows(self, evaluation_ids: Sequence[str]) -> Mapping[str, EvaluationRow]:
        async with single_statement(self._pool) as conn:
            cursor = await conn.cursor(binary=True).execute(
                query("read_evaluations"), [binary_array("text", evaluation_ids)]
            )
            found = await cursor.fetchall()
        return {
            key: EvaluationRow(
                key, batch_id, month, Cursor(attempt, sequence, Phase(state)), owner, bridged, head
            )
            for key, batch_id, month, attempt, sequence, state, owner, bridged, head in found
        }

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        async with transaction(self._pool) as conn:
            return await read_stored(conn, rows)

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        while True:
            try:
                async with transaction(self._pool) as conn:
                    return await _commit(conn, changes, self._few)
            except RETRIED:
                continue  # rolled back; nothing was written

    async def quarantine(self, refused: Sequence[QuarantineRow]) -> int:
        async with transaction(self._pool) as conn:
            return await insert_quarantined(conn, refused)

    async def open_evaluations(self, *, after: str, unchanged_for: float, limit: int) -> Sequence[str]:
        async with transaction(self._pool) as conn:
            wanted = {"after": after, "unchanged_for": unchanged_for, "limit": limit}
            cursor = await conn.execute(query("read_open_evaluations"), wanted)
            return [evaluation_id for (evaluation_id,) in await cursor.fetchall()]


async def read_stored(
    conn: Connection, rows: Sequence[EvaluationRow]
) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
    """Return all stored events of some evaluations, in the caller's transaction."""
    found: dict[str, dict[EventKey, StoredEvent]] = defaultdict(dict)
    wanted = [[row.month for row in rows], [row.evaluation_id for row in rows]]
    cursor = await conn.execute(query("read_stored_events"), wanted)
    for evaluation_id, attempt, sequence, body, verdict in await cursor.fetchall():
        found[evaluation_id][attempt, sequence] = StoredEvent(body.encode(), verdict)
    return found


async def _commit(conn: Connection, changes: Sequence[Change], few: int) -> CommitResult:
    """Write and commit; in pipeline mode, BEGIN and COMMIT share the round trips of the statements."""
    if not _are_few(changes, few) or any(c.side_events or c.quarantined for c in changes):
        return await commit_changes(conn, changes, few=few)
    async with conn.pipeline():
        committed = await commit_changes(conn, changes, few=few)
        await conn.commit()
    return committed


async def commit_changes(conn: Connection, changes: Sequence[Change], *, few: int = FEW) -> CommitResult:
    """Write changes in the caller's transaction, except those that lose the compare-and-set."""
    moving = sorted((c for c in changes if c.moves), key=lambda change: change.evaluation_id)
    lost = await (_write_few if _are_few(changes, few) else _write_many)(conn, moving)
    won = [c for c in changes if c.evaluation_id not in lost]
    winners = [c for c in moving if c.evaluation_id not in lost]
    await _insert_bridges(conn, winners)
    bad = [refused for change in won for refused in change.quarantined]
    newly_quarantined = await insert_quarantined(conn, bad)
    progress = await _insert_side_events(conn, won)
    for change in winners:
        progress[change.batch_id, change.shard] += change.progress
    # Last, because every worker of a batch updates these rows: they are locked as briefly as possible.
    await add_progress(conn, progress)
    committed = CommitResult(lost, newly_quarantined)
    for added in progress.values():
        committed.progress += added
    return committed


def _are_few(changes: Sequence[Change], few: int) -> bool:
    """Whether one statement writes the changes: it can't replace the scorecard of a reopened evaluation."""
    return len(changes) <= few and not any(change.reopened for change in changes)


async def _write_few(conn: Connection, changes: Sequence[Change]) -> set[str]:
    """Write rows, events and scorecards by one statement; returns the evaluations that lost the race."""
    if not changes:
        return set()
    staged = binary_columns(FEW_TYPES, map(_staged, changes))
    events = binary_columns(EVENT_TYPES, (event for change in changes for event in change.events))
    cursor = await conn.execute(query("write_few"), [*staged, *events])
    won = {evaluation_id for (evaluation_id,) in await cursor.fetchall()}
    return {change.evaluation_id for change in changes} - won


async def _write_many(conn: Connection, changes: Sequence[Change]) -> set[str]:
    """Write rows, events and scorecards by COPY; returns the evaluations that lost the race."""
    lost = await _move(conn, changes)
    winners = [change for change in changes if change.evaluation_id not in lost]
    async with conn.cursor() as cursor, cursor.copy(query("copy_events")) as copy:
        await copy.write(binary_rows(event for change in winners for event in change.events))
    await _write_scorecards(conn, winners, lost)
    return lost


async def _move(conn: Connection, changes: Sequence[Change]) -> set[str]:
    """Create and move rows by compare-and-set; returns the evaluations that lost the race."""
    if not changes:
        return set()
    async with conn.cursor() as cursor, cursor.copy(query("copy_staged")) as copy:
        copy.set_types(STAGED_TYPES)
        for change in changes:
            await copy.write_row(_staged(change))
    created = await conn.execute(query("insert_evaluations"))
    moved = created.rowcount
    if any(change.before is not None for change in changes):
        moved += (await conn.execute(query("move_evaluations"))).rowcount
    if moved == len(changes):
        return set()
    cursor = await conn.execute(query("read_lost_races"))
    return {evaluation_id for (evaluation_id,) in await cursor.fetchall()}


def _staged(change: Change) -> tuple[Any, ...]:
    card = change.scorecard
    return (
        change.evaluation_id,
        change.batch_id,
        change.month,
        change.shard,
        *(change.before or _NO_ROW)[:2],
        *change.after,
        change.owner,
        change.bridged,
        change.head,
        change.ended_at,
        *(card[3:12] if card else _NO_CARD),
    )


async def _write_scorecards(conn: Connection, changes: Sequence[Change], lost: set[str]) -> None:
    reopened = [c.evaluation_id for c in changes if c.reopened]
    if reopened:
        await conn.execute(query("delete_scorecards"), [reopened])
    if any(c.scorecard for c in changes):
        await conn.execute(query("upsert_scorecards"), [list(lost)])


async def _insert_bridges(conn: Connection, changes: Sequence[Change]) -> None:
    rows = [
        (c.evaluation_id, bridge.attempt, bridge.closing.event.sequence, _multirange(bridge.missing))
        for c in changes
        for bridge in c.bridges
    ]
    if rows:
        await conn.execute(query("insert_bridges"), _columns(rows))


async def insert_quarantined(conn: Connection, refused: Sequence[QuarantineRow]) -> int:
    """Insert rejected entries idempotently in the caller's transaction; returns how many were new."""
    if not refused:
        return 0
    cursor = await conn.execute(query("insert_quarantine"), _columns(refused))
    return cursor.rowcount


async def _insert_side_events(
    conn: Connection, changes: Sequence[Change]
) -> defaultdict[tuple[str, int], Progress]:
    """Insert side events idempotently, and return the counters of those that were new."""
    progress: defaultdict[tuple[str, int], Progress] = defaultdict(Progress)
    side = {c.evaluation_id: c for c in changes if c.side_events}
    rows = [event for change in side.values() for event in change.side_events]
    if not rows:
        return progress
    cursor = await conn.execute(query("insert_side_events"), _columns(rows))
    for evaluation_id, attempt, sequence in await cursor.fetchall():
        change = side[evaluation_id]
        spent = change.side_progress.get((attempt, sequence))
        if spent:
            progress[change.batch_id, change.shard] += spent
    return progress


async def add_progress(conn: Connection, progress: Mapping[tuple[str, int], Progress]) -> None:
    """Add to the counters of batches and shards, in the caller's transaction."""
    rows = [(*key, *counters_of(added)) for key, added in sorted(progress.items()) if added]
    if rows:
        await conn.execute(query("add_progress"), binary_columns(PROGRESS_TYPES, rows))


def _columns(rows: Sequence[tuple[Any, ...]]) -> list[list[Any]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _multirange(missing: Iterable[range]) -> str:
    return "{" + ",".join(f"[{hole.start},{hole.stop})" for hole in missing) + "}"


def binary_rows(rows: Iterable[EventRow]) -> bytes:
    """Encode rows for `COPY events … FROM STDIN (FORMAT binary)`, in one piece.

    psycopg encodes row by row, at a price that shows: every event passes here. The format is PostgreSQL's:
    a header, for each row its number of columns and each column's length and bytes, a trailer.
    """
    parts = [_HEADER]
    words: dict[str, bytes] = {}
    for month, key, attempt, sequence, type_, verdict, occurred_at, entry_id, event in rows:
        since = occurred_at - _EPOCH
        micros = (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
        parts += (
            _month(9, 4, (month - _FIRST_DAY).days),
            _text(key),
            _numbers(4, attempt, 4, sequence),
            words.get(type_) or words.setdefault(type_, _text(type_)),
            words.get(verdict) or words.setdefault(verdict, _text(verdict)),
            _time(8, micros),
            _text(entry_id),
            _length(len(event)),
            event,
        )
    parts.append(_TRAILER)
    return b"".join(parts)


def _text(value: str) -> bytes:
    encoded = value.encode()
    return _length(len(encoded)) + encoded
