"""All that the tables hold, as bytes to compare: everything but where and when it arrived."""

from collections.abc import Iterator
from typing import Any

from psycopg import AsyncConnection, sql

from projections.store.memory import MemoryStore

TABLES = ("evaluations", "events", "scorecards", "batch_progress", "gap_bridges", "quarantine")
ARRIVAL = ["entry_id", "head", "recorded_at", "updated_at", "bridged_at", "quarantined_at", "last_ended_at"]
"""The columns that record where or when something arrived; no other may depend on it."""


def memory_dump(tables: MemoryStore) -> list[bytes]:
    """Dump every row of the tables in memory, sorted."""
    return sorted(repr(row).encode() for row in _memory_rows(tables))


def _memory_rows(tables: MemoryStore) -> Iterator[tuple[Any, ...]]:
    for held in tables.evaluations.values():
        yield "evaluations", held.row._replace(head=None), held.ended_at
    for event in tables.events.values():
        yield "events", event._replace(entry_id="")
    for card in tables.scorecards.values():
        yield "scorecards", card
    for place, progress in tables.progress.items():
        yield "batch_progress", place, progress
    for key, missing in tables.bridges.items():
        yield "gap_bridges", key, missing
    for bad in tables.quarantined.values():
        yield "quarantine", bad._replace(entry_id="")


async def postgres_dump(conn: AsyncConnection[Any]) -> list[bytes]:
    """Dump every row of the tables in Postgres as COPY writes it, sorted."""
    return sorted([row for table in TABLES for row in await _postgres_rows(conn, table)])


async def _postgres_rows(conn: AsyncConnection[Any], table: str) -> list[bytes]:
    found = await conn.execute(
        "SELECT attname FROM pg_attribute WHERE attrelid = %s::regclass AND attnum > 0"
        " AND NOT attisdropped AND attname <> ALL(%s) ORDER BY attnum",
        [table, ARRIVAL],
    )
    columns = sql.SQL(", ").join(sql.Identifier(name) for (name,) in await found.fetchall())
    statement = sql.SQL("COPY (SELECT {} FROM {}) TO STDOUT").format(columns, sql.Identifier(table))
    async with conn.cursor() as cursor, cursor.copy(statement) as copy:
        written = b"".join([bytes(chunk) async for chunk in copy])
    return [table.encode() + b": " + line for line in written.splitlines()]
