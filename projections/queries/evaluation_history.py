"""All that the tables hold of one evaluation, and ids next to an unknown one."""

from collections.abc import Sequence
from typing import Any

from eventlog.codec import Entry, decode_body
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor, Disposition
from projections.database.connection import Connection
from projections.queries.evaluation_records import (
    RecordedBridge,
    RecordedEvent,
    RecordedRefusal,
    StoredEvaluation,
    StoredHistory,
)
from projections.sql import query
from projections.verification.pages import ranges, read_scorecards

Rows = list[tuple[Any, ...]]
MAX_REFUSALS = 500
SHOWN_BYTES = 4_096
"""Of a quarantined entry that is not an event."""
NEIGHBOURS = 25
"""Ids read on each side of each probe."""


async def read_history(conn: Connection, evaluation_id: str) -> StoredHistory:
    """Read one evaluation's row, events, bridges, quarantined entries and scorecard."""
    async with conn.transaction():
        refusals, refused = await _refusals(conn, evaluation_id)
        evaluation = await _evaluation(conn, evaluation_id)
        if evaluation is None:
            return StoredHistory(None, refusals=refusals, refused=refused)
        read = [
            _event(row) for row in await _rows(conn, "history_events", [evaluation.month, evaluation_id])
        ]
        unreadable = tuple(event for event in read if isinstance(event, RecordedRefusal))
        return StoredHistory(
            evaluation,
            tuple(event for event in read if isinstance(event, RecordedEvent)),
            await _bridges(conn, evaluation_id),
            refusals + unreadable,
            refused + len(unreadable),
            (await read_scorecards(conn, [evaluation_id])).get(evaluation_id),
        )


async def nearby_ids(conn: Connection, probes: Sequence[str]) -> list[str]:
    """Return the evaluations next to some ids in id order, by index scans."""
    wanted = {"probes": list(probes), "limit": NEIGHBOURS}
    async with conn.transaction():
        return [key for (key,) in await _rows(conn, "nearby_evaluations", wanted)]


async def is_batch(conn: Connection, identifier: str) -> bool:
    """Whether a batch has this id."""
    async with conn.transaction():
        return bool(await _rows(conn, "batch_exists", [identifier]))


async def _rows(conn: Connection, name: str, wanted: Sequence[object] | dict[str, object]) -> Rows:
    return await (await conn.execute(query(name), wanted)).fetchall()


async def _evaluation(conn: Connection, evaluation_id: str) -> StoredEvaluation | None:
    for batch_id, month, attempt, sequence, state, owner, ended_at in await _rows(
        conn, "history_row", [evaluation_id]
    ):
        return StoredEvaluation(batch_id, month, Cursor(attempt, sequence, Phase(state)), owner, ended_at)
    return None


def _event(row: tuple[Any, ...]) -> RecordedEvent | RecordedRefusal:
    text, verdict, entry_id, recorded_at = row
    body, place = text.encode(), entry_id.encode()
    try:
        return RecordedEvent(Entry(place, decode_body(body), body), Disposition(verdict), recorded_at)
    except ValueError as error:
        return RecordedRefusal(
            "", "unreadable", f"stored, but {error}", place, len(body), body, recorded_at
        )


async def _bridges(conn: Connection, evaluation_id: str) -> tuple[RecordedBridge, ...]:
    rows = await _rows(conn, "history_bridges", [evaluation_id])
    return tuple(
        RecordedBridge(attempt, closing, ranges(missing), at) for attempt, closing, missing, at in rows
    )


async def _refusals(conn: Connection, evaluation_id: str) -> tuple[tuple[RecordedRefusal, ...], int]:
    wanted = {"evaluation": evaluation_id, "bytes": SHOWN_BYTES, "limit": MAX_REFUSALS}
    rows = await _rows(conn, "history_quarantined", wanted)
    found = tuple(
        RecordedRefusal(key, reason, detail, entry_id.encode(), size, body, at)
        for _, key, reason, detail, entry_id, size, body, at in rows
    )
    return found, rows[0][0] if rows else 0
