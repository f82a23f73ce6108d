"""Readiness of the database: migrated, and with the configured number of shards."""

from psycopg import AsyncConnection

from projections.database.migrations import Migration, migrate, pending


class DatabaseNotReady(Exception):  # noqa: N818 - a state of the world
    """The database lacks migrations, or was created with another number of shards."""


async def prepare(postgres_url: str, *, shards: int) -> list[Migration]:
    """Apply pending migrations, store the number of shards, and return the applied migrations."""
    applied = await migrate(postgres_url)
    async with await AsyncConnection.connect(postgres_url) as conn:
        await conn.execute(
            "INSERT INTO settings (name, value) VALUES ('shards', %s) ON CONFLICT DO NOTHING", [str(shards)]
        )
    await check_ready(postgres_url, shards=shards)
    return applied


async def check_ready(postgres_url: str, *, shards: int) -> None:
    """Raise `DatabaseNotReady` unless all migrations are applied and the number of shards matches."""
    missing = await pending(postgres_url)
    if missing:
        raise DatabaseNotReady(
            f"The database lacks {len(missing)} migration(s), from {missing[0].version:04} on. "
            "Run: scoreline db migrate"
        )
    async with await AsyncConnection.connect(postgres_url) as conn:
        cursor = await conn.execute("SELECT value FROM settings WHERE name = 'shards'")
        recorded = await cursor.fetchone()
    if recorded is None:
        raise DatabaseNotReady("The database has no number of shards stored. Run: scoreline db migrate")
    if int(recorded[0]) != shards:
        raise DatabaseNotReady(
            f"The database was created for {recorded[0]} shards, EVAL_SHARDS is {shards}. "
            f"Set EVAL_SHARDS={recorded[0]}: another number would read events from the wrong streams."
        )
