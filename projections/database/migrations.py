"""SQL migrations, applied in order, each in a transaction of its own.

Idempotent and safe to run concurrently: an advisory lock serializes two migrations, and the second has
nothing to apply. A file that was changed after it had been applied is an error.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import psycopg
from psycopg import AsyncConnection

from projections.sql import query

MIGRATIONS = Path(__file__).parents[1] / "migrations"
EARLIER_TEXTS = {
    # Required CREATEROLE although the roles existed; the resulting schema is the same.
    2: frozenset({"e4f721ef7d6ff807286ec914e3f433932441bff2ec78d302c0dd5e4cd37ce590"}),
}
"""Checksums of earlier, equivalent texts: a database that applied one of those is up to date."""
LOCK = 7_265_001
"""The advisory lock of migrations."""


class MigrationError(Exception):
    """The schema of the database and this code are incompatible; the message names the remedy."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One migration file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """SHA-256 of the text."""
        return sha256(self.sql.encode()).hexdigest()


def available(folder: Path = MIGRATIONS) -> list[Migration]:
    """List the migrations of this release, in order."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        matched = re.fullmatch(r"(\d{4})_(\w+)", path.stem)
        if not matched:
            raise MigrationError(f"{path.name} is not named like 0001_what_it_does.sql")
        found.append(Migration(int(matched[1]), matched[2], path.read_text(encoding="utf-8")))
    return found


async def migrate(postgres_url: str, *, migrations: list[Migration] | None = None) -> list[Migration]:
    """Apply the pending migrations and return them."""
    wanted = available() if migrations is None else migrations
    async with await AsyncConnection.connect(postgres_url, autocommit=True) as conn:
        await conn.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        await conn.execute(query("create_schema_migrations"))
        missing = _missing(wanted, await _applied(conn))
        for migration in missing:
            await _apply(conn, migration)
        return missing


async def pending(conn: AsyncConnection[Any]) -> list[Migration]:
    """List the pending migrations without applying them, on a connection in autocommit."""
    try:
        return _missing(available(), await _applied(conn))
    except psycopg.errors.UndefinedTable:
        return available()


def _missing(wanted: list[Migration], applied: dict[int, str]) -> list[Migration]:
    known = {migration.version: migration for migration in wanted}
    for version, checksum in sorted(applied.items()):
        if version not in known:
            raise MigrationError(
                f"The database is at version {version}, this code knows up to {max(known)}. "
                "Upgrade scoreline, or use another database."
            )
        if checksum not in {known[version].checksum, *EARLIER_TEXTS.get(version, ())}:
            raise MigrationError(
                f"Migration {version:04} was changed after it had been applied. "
                "Restore the file, and make the change in a new one."
            )
    return [migration for migration in wanted if migration.version not in applied]


async def _applied(conn: AsyncConnection) -> dict[int, str]:
    cursor = await conn.execute("SELECT version, checksum FROM schema_migrations")
    return dict(await cursor.fetchall())


async def _apply(conn: AsyncConnection, migration: Migration) -> None:
    async with conn.transaction():
        await conn.execute(migration.sql)
        await conn.execute(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
            [migration.version, migration.name, migration.checksum],
        )
