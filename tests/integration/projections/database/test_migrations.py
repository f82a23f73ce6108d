"""SQL migrations: idempotent, safe when run concurrently, and strict about applied files."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import AsyncConnection, sql

from projections.database import migrations as migrate_module
from projections.database.migrations import Migration, MigrationError, available, migrate, pending

FIRST = Migration(1, "first", "CREATE TABLE first (n integer)")


SECOND = Migration(2, "second", "CREATE TABLE second (n integer); INSERT INTO second VALUES (1)")


BROKEN = Migration(2, "broken", "CREATE TABLE half (n integer); SELECT no_such_function()")


@pytest.fixture
async def conn(empty_postgres_url: str) -> AsyncIterator[AsyncConnection[Any]]:
    async with await AsyncConnection.connect(empty_postgres_url, autocommit=True) as admin:
        yield admin


async def ask(conn: AsyncConnection[Any], statement: Any) -> list[Any]:
    return await (await conn.execute(statement)).fetchall()


async def tables(conn: AsyncConnection[Any]) -> set[str]:
    found = await ask(conn, "SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {name for (name,) in found}


async def test_a_new_database_gets_every_migration_once(empty_postgres_url, conn):
    """Each is applied in order and recorded, and a second run applies nothing."""
    applied = await migrate(empty_postgres_url)
    assert [each.version for each in applied] == sorted({each.version for each in available()})
    assert await migrate(empty_postgres_url) == []
    rows = await ask(conn, "SELECT version, name, checksum FROM schema_migrations ORDER BY version")
    assert rows == [(each.version, each.name, each.checksum) for each in available()]
    assert {
        "batches",
        "evaluations",
        "events",
        "scorecards",
        "batch_progress",
        "quarantine",
    } <= await tables(conn)


async def test_concurrent_runs_apply_each_migration_once(empty_postgres_url, conn):
    """One run applies them; the others wait and find nothing to do."""
    applied = await asyncio.gather(*(migrate(empty_postgres_url) for _ in range(5)))
    assert sorted(len(each) for each in applied) == [0, 0, 0, 0, len(available())]


async def test_databases_of_one_server_can_be_migrated_concurrently(servers, empty_postgres_url):
    """Roles belong to the whole server, and the second database finds them there."""
    urls = [urlsplit(empty_postgres_url)._replace(path=f"/{uuid.uuid4().hex}").geturl() for _ in range(3)]
    async with await AsyncConnection.connect(servers.postgres_url, autocommit=True) as admin:
        names = [sql.Identifier(urlsplit(url).path[1:]) for url in urls]
        for name in names:
            await admin.execute(sql.SQL("CREATE DATABASE {}").format(name))
        try:
            assert all(await asyncio.gather(*(migrate(url) for url in urls)))
        finally:
            for name in names:
                await admin.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(name))


async def test_a_later_migration_is_applied_to_an_older_database(empty_postgres_url, conn):
    """Only the missing migrations are applied."""
    assert await migrate(empty_postgres_url, migrations=[FIRST]) == [FIRST]
    assert await migrate(empty_postgres_url, migrations=[FIRST, SECOND]) == [SECOND]
    assert await ask(conn, "SELECT n FROM second") == [(1,)]


async def test_a_migration_that_fails_changes_nothing(empty_postgres_url, conn):
    """Each is one transaction; earlier ones stay, and the next run continues from there."""
    with pytest.raises(psycopg.errors.UndefinedFunction):
        await migrate(empty_postgres_url, migrations=[FIRST, BROKEN])
    assert await tables(conn) == {"schema_migrations", "first"}
    assert await migrate(empty_postgres_url, migrations=[FIRST, SECOND]) == [SECOND]


async def test_a_changed_file_is_refused(empty_postgres_url, conn):
    """A database with the old text exists, so nothing is applied on top of it."""
    await migrate(empty_postgres_url, migrations=[FIRST])
    changed = replace(FIRST, sql="CREATE TABLE first (n bigint)")
    with pytest.raises(MigrationError, match="0001 was changed after it had been applied"):
        await migrate(empty_postgres_url, migrations=[changed, SECOND])
    assert "second" not in await tables(conn)


async def test_a_newer_database_is_refused(empty_postgres_url, conn):
    """Old code must not write to tables that it does not know."""
    await migrate(empty_postgres_url, migrations=[FIRST, SECOND])
    with pytest.raises(MigrationError, match="at version 2, this code knows up to 1"):
        await migrate(empty_postgres_url, migrations=[FIRST])


async def test_pending_lists_the_migrations_that_migrate_would_apply(empty_postgres_url, conn, monkeypatch):
    """All for an empty database, the rest for an older one; listing them changes nothing."""
    monkeypatch.setattr(migrate_module, "available", lambda: [FIRST, SECOND])
    assert await pending(conn) == [FIRST, SECOND]
    assert await tables(conn) == set()
    await migrate(empty_postgres_url, migrations=[FIRST])
    assert await pending(conn) == [SECOND]
    await migrate(empty_postgres_url)
    assert await pending(conn) == []


def test_files_are_named_by_number_and_purpose(tmp_path: Path):
    """A file with a name that would never be applied is an error."""
    (tmp_path / "0001_first.sql").write_text("SELECT 1")
    assert [(each.version, each.name) for each in available(tmp_path)] == [(1, "first")]
    (tmp_path / "later.sql").write_text("SELECT 1")
    with pytest.raises(MigrationError, match=r"later\.sql is not named like"):
        available(tmp_path)


async def partitions(conn: AsyncConnection[Any]) -> list[str]:
    statement = (
        "SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'events'::regclass ORDER BY 1"
    )
    return [name for (name,) in await ask(conn, statement)]


async def ensure(empty_postgres_url: str, day: date) -> None:
    async with await AsyncConnection.connect(empty_postgres_url) as conn:
        await conn.execute("SELECT ensure_events_partition(%s)", [day])


async def test_a_month_gets_its_partition_once(empty_postgres_url, conn):
    """Any day of the month creates it, also at the turn of a year."""
    await migrate(empty_postgres_url)
    for day in (date(2026, 12, 31), date(2026, 12, 1), date(2027, 1, 1)):
        await ensure(empty_postgres_url, day)
    assert await partitions(conn) == ["events_2026_12", "events_2027_01"]


async def test_a_partition_requested_concurrently_is_created_once(empty_postgres_url, conn):
    """No caller fails because another was first."""
    await migrate(empty_postgres_url)
    await asyncio.gather(*(ensure(empty_postgres_url, date(2031, 5, n)) for n in range(1, 9)))
    assert await partitions(conn) == ["events_2031_05"]


async def test_an_event_without_a_partition_is_refused(empty_postgres_url, conn):
    """Nothing is stored outside the partitions, so a dropped month stays dropped."""
    await migrate(empty_postgres_url)
    with pytest.raises(psycopg.errors.CheckViolation, match="no partition"):
        await conn.execute(
            "INSERT INTO events VALUES"
            " ('1999-01-01', 'e', 1, 0, 'queued', 'applied', now(), '1-0', now(), '{}')"
        )
