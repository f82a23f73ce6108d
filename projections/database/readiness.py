"""Readiness of the database: migrated, and with the configured number of shards."""

from psycopg import AsyncConnection

from projections.database.connection import Connection
from projections.database.migrations import Migration, migrate, pending
from projections.sql import query


class DatabaseNotReady(Exception):  # noqa: N818 - a state of the world
    """The database lacks migrations, or was created with another number of shards."""


async def prepare(postgres_url: str, *, shards: int) -> list[Migration]:
    """Apply pending migrations, store the number of shards, and return the applied migrations."""
    async with await AsyncConnection.connect(postgres_url, autocommit=True) as conn:
        applied = await migrate(postgres_url) if await pending(conn) else []
        if await _recorded_shards(conn) is None:
            await conn.execute(query("record_shards"), [str(shards)])
        await check_schema(conn, shards=shards)
    return applied


async def check_ready(postgres_url: str, *, shards: int) -> None:
    """Raise `DatabaseNotReady` unless all migrations are applied and the number of shards matches."""
    async with await AsyncConnection.connect(postgres_url, autocommit=True) as conn:
        await check_schema(conn, shards=shards)


async def check_schema(conn: Connection, *, shards: int) -> None:
    """Check an open connection in autocommit; raises `DatabaseNotReady`."""
    missing = await pending(conn)
    if missing:
        raise DatabaseNotReady(
            f"The database lacks {len(missing)} migration(s), from {missing[0].version:04} on. "
            "Run: scoreline db migrate"
        )
    recorded = await _recorded_shards(conn)
    if recorded is None:
        raise DatabaseNotReady("The database has no number of shards stored. Run: scoreline db migrate")
    if recorded != shards:
        raise DatabaseNotReady(
            f"The database was created for {recorded} shards, EVAL_SHARDS is {shards}. "
            f"Set EVAL_SHARDS={recorded}: another number would read events from the wrong streams."
        )


async def _recorded_shards(conn: Connection) -> int | None:
    row = await (await conn.execute(query("recorded_shards"))).fetchone()
    return int(row[0]) if row else None
