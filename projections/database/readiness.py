"""Is this database ours, up to date, and of one mind with us about the shards?"""

from psycopg import AsyncConnection

from projections.database.migrations import Migration, migrate, pending


class DatabaseNotReady(Exception):  # noqa: N818 - a state of the world; says what to do
    """The database lacks tables, or was made for other settings."""


async def prepare(postgres_url: str, *, shards: int) -> list[Migration]:
    """Bring a database up to date and write down the number of shards; returns what was applied."""
    applied = await migrate(postgres_url)
    async with await AsyncConnection.connect(postgres_url) as conn:
        await conn.execute(
            "INSERT INTO settings (name, value) VALUES ('shards', %s) ON CONFLICT DO NOTHING", [str(shards)]
        )
    await check_ready(postgres_url, shards=shards)
    return applied


async def check_ready(postgres_url: str, *, shards: int) -> None:
    """Raise `DatabaseNotReady` unless every table is there and the shards agree."""
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
        raise DatabaseNotReady(
            "The database does not say how many shards there are. Run: scoreline db migrate"
        )
    if int(recorded[0]) != shards:
        raise DatabaseNotReady(
            f"The database was made for {recorded[0]} shards, EVAL_SHARDS says {shards}. "
            f"Set EVAL_SHARDS={recorded[0]}: with another, events would be looked for in the wrong place."
        )
