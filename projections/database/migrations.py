"""Plain SQL migrations, in order, each in a transaction of its own.

Safe to repeat, and when two run at once: an advisory lock lets one go first, and the other then finds
nothing to do. A file that was changed after it had been applied is an error, not a surprise.
"""

import re
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psycopg
from psycopg import AsyncConnection

from projections.sql import query

MIGRATIONS = Path(__file__).parents[1] / "migrations"
EARLIER_TEXTS = {
    # Asked for CREATEROLE though the roles were there; what it leaves behind is the same.
    2: frozenset({"e4f721ef7d6ff807286ec914e3f433932441bff2ec78d302c0dd5e4cd37ce590"}),
}
"""Checksums of earlier, equivalent texts: a database that applied one of those is up to date."""
LOCK = 7_265_001
"""The advisory lock of migrations: any number that nothing else here uses."""


class MigrationError(Exception):
    """The database and this code do not fit together; says what to do."""


@dataclass(frozen=True, slots=True)
class Migration:
    """One file."""

    version: int
    name: str
    sql: str

    @property
    def checksum(self) -> str:
        """Tell this text from any other."""
        return sha256(self.sql.encode()).hexdigest()


def available(folder: Path = MIGRATIONS) -> list[Migration]:
    """List the migrations this code brings, in order."""
    found = []
    for path in sorted(folder.glob("*.sql")):
        matched = re.fullmatch(r"(\d{4})_(\w+)", path.stem)
        if not matched:
            raise MigrationError(f"{path.name} is not named like 0001_what_it_does.sql")
        found.append(Migration(int(matched[1]), matched[2], path.read_text(encoding="utf-8")))
    return found


async def migrate(postgres_url: str, *, migrations: list[Migration] | None = None) -> list[Migration]:
    """Bring the database up to date and return what was applied."""
    wanted = available() if migrations is None else migrations
    async with await AsyncConnection.connect(postgres_url, autocommit=True) as conn:
        await conn.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        await conn.execute(query("create_schema_migrations"))
        missing = _missing(wanted, await _applied(conn))
        for migration in missing:
            await _apply(conn, migration)
        return missing


async def pending(postgres_url: str) -> list[Migration]:
    """List what `migrate` would apply, changing nothing."""
    async with await AsyncConnection.connect(postgres_url, autocommit=True) as conn:
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
                "Put the file back as it was, and make the change in a new one."
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
