"""The permissions of each role in Postgres."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import AsyncConnection, sql
from psycopg_pool import AsyncConnectionPool

from eventlog.keys import DEFAULT_SHARDS
from eventlog.memory import MemoryEventLog
from projections.database.connection import make_pool
from projections.database.readiness import prepare
from projections.store.postgres import PostgresStore
from storage_worker.storage import Storage
from tests.builders import EVALUATION, event, history
from tests.storage_world import GAP_POLICY, World

ROLES = ("scoreline_reader", "scoreline_storage", "scoreline_coordinator", "scoreline_migrator")
FACTS = ("events", "gap_bridges", "quarantine")
TABLES = (*FACTS, "batches", "evaluations", "scorecards", "batch_progress", "settings", "schema_migrations")
TRIED: dict[str, LiteralString] = {
    "SELECT": "SELECT * FROM {} LIMIT 0",
    "INSERT": "INSERT INTO {0} SELECT (NULL::{0}).* WHERE false",
    "UPDATE": "UPDATE {} SET {} = DEFAULT WHERE false",
    "DELETE": "DELETE FROM {} WHERE false",
    "TRUNCATE": "TRUNCATE {}",
}
COLUMNS = {
    "settings": "value",
    "schema_migrations": "name",
    "events": "type",
    "gap_bridges": "missing",
    "quarantine": "detail",
}
"""The column to update in tables without `batch_id`."""
MAY_WRITE = {
    "scoreline_reader": {},
    "scoreline_storage": {
        "batches": {"INSERT"},
        "events": {"INSERT"},
        "gap_bridges": {"INSERT"},
        "quarantine": {"INSERT"},
        "evaluations": {"INSERT", "UPDATE"},
        "batch_progress": {"INSERT", "UPDATE"},
        "scorecards": {"INSERT", "UPDATE", "DELETE"},
    },
    "scoreline_coordinator": {
        "events": {"INSERT"},
        "batches": {"INSERT", "UPDATE"},
        "evaluations": {"INSERT", "UPDATE"},
        "batch_progress": {"INSERT", "UPDATE"},
        "scorecards": {"INSERT", "UPDATE", "DELETE"},
    },
    "scoreline_migrator": {
        table: {"INSERT"} if table in FACTS else {"INSERT", "UPDATE", "DELETE", "TRUNCATE"}
        for table in TABLES
    },
}
"""What each role may write; everything else must be denied."""


@pytest.fixture
async def url(postgres_url: str) -> str:
    await prepare(postgres_url, shards=DEFAULT_SHARDS)
    return postgres_url


@asynccontextmanager
async def acting_as(url: str, role: str) -> AsyncIterator[AsyncConnection[Any]]:
    """Open a connection with the permissions of this role only."""
    async with await AsyncConnection.connect(url, autocommit=True) as conn:
        await conn.execute(sql.SQL("SET ROLE {}").format(sql.Identifier(role)))
        yield conn


async def allows(conn: AsyncConnection[Any], statement: sql.Composed) -> bool:
    """Try a statement that would change nothing, and roll it back."""
    try:
        async with conn.transaction(force_rollback=True):
            await conn.execute(statement)
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


def attempt(deed: str, table: str) -> sql.Composed:
    names = [sql.Identifier(table), sql.Identifier(COLUMNS.get(table, "batch_id"))]
    return sql.SQL(TRIED[deed]).format(*(names if deed == "UPDATE" else names[:1]))


@pytest.mark.parametrize("role", ROLES)
async def test_each_role_has_exactly_the_permissions_it_needs(url, role):
    """Every role can read; the list above has what it can write, by table and operation."""
    async with acting_as(url, role) as conn:
        allowed = {
            table: {deed for deed in TRIED if await allows(conn, attempt(deed, table))} for table in TABLES
        }
    assert allowed == {table: {"SELECT"} | MAY_WRITE[role].get(table, set()) for table in TABLES}


@pytest.mark.parametrize("role", ROLES)
async def test_no_role_can_change_events_through_a_partition(url, role):
    """An operation that is denied on the log is denied on each partition."""
    async with await AsyncConnection.connect(url) as admin:
        await admin.execute("SELECT ensure_events_partition('2026-05-01')")
    async with acting_as(url, role) as conn:
        for deed in ("UPDATE", "DELETE", "TRUNCATE"):
            statement = sql.SQL(TRIED[deed]).format(
                sql.Identifier("events_2026_05"), sql.Identifier("type")
            )
            assert not await allows(conn, statement)


@pytest.mark.parametrize("role", ROLES)
async def test_no_role_can_create_or_drop_tables(url, role):
    """Only the owner of the tables can."""
    async with acting_as(url, role) as conn:
        for statement in (
            "CREATE TABLE public.mine ()",
            "DROP TABLE events",
            "ALTER TABLE events RENAME TO gone",
        ):
            assert not await allows(conn, sql.SQL(statement).format())


@pytest.mark.parametrize(("role", "may"), [*zip(ROLES, [False, True, True, False], strict=True)])
async def test_roles_that_insert_events_can_create_their_partition(url, role, may):
    """They call a function of the owner, which does nothing else."""
    async with acting_as(url, role) as conn:
        statement = sql.SQL("SELECT ensure_events_partition({})").format(date(2030, 1, 1))
        assert await allows(conn, statement) is may


@pytest.mark.parametrize("role", ROLES)
async def test_every_role_can_read_the_progress_of_a_batch(url, role):
    """It is the view that dashboards use."""
    async with acting_as(url, role) as conn:
        assert await allows(conn, sql.SQL("SELECT * FROM batch_status").format())


# The storage worker, as its role.


@asynccontextmanager
async def pool_of(url: str, role: str) -> AsyncIterator[AsyncConnectionPool]:
    """Make the pool of a storage worker, for a login with this role only."""
    joint = "&" if "?" in url else "?"
    async with make_pool(f"{url}{joint}options=-c%20role%3D{role}", size=2) as pool:
        yield pool


async def test_the_storage_role_suffices_for_a_storage_worker(url):
    """New batches and months, events of every disposition, scorecards, bridges and quarantine."""
    world = World()
    world.xadd(
        *history("queued failed"), event("queued:operator", attempt=2), event("provisioning", sequence=9)
    )
    world.xadd(event("queued:operator", attempt=2, source="rival"))
    queued, *_, completed = history("queued provisioning running completed", evaluation_id="gapped")
    world.xadd(queued, completed)
    world.xadd_fields("garbled", b"event", b"garbage")
    async with pool_of(url, "scoreline_storage") as pool:
        storage = Storage(world.log, PostgresStore(pool), GAP_POLICY.degraded())
        await storage.store([EVALUATION, "gapped", "garbled"])
        await storage.store([EVALUATION])
        world.xadd(*history("provisioning running completed", attempt=2, first=1))
        await storage.sweep(unchanged_for=0, page=10)
    async with acting_as(url, "scoreline_reader") as reader:
        cards = await reader.execute("SELECT evaluation_id, status, bridged FROM scorecards ORDER BY 1")
        assert await cards.fetchall() == [(EVALUATION, "completed", False), ("gapped", "completed", True)]
        reasons = await reader.execute("SELECT reason FROM quarantine ORDER BY 1")
        assert await reasons.fetchall() == [("conflict",), ("garbage",)]
        verdicts = await reader.execute("SELECT DISTINCT verdict FROM events ORDER BY 1")
        assert await verdicts.fetchall() == [("applied",), ("stale",)]


async def test_the_reader_role_cannot_commit(url):
    """A stolen login of a dashboard cannot store anything."""
    log = MemoryEventLog(lambda: 0)
    async with pool_of(url, "scoreline_reader") as pool:
        tables = PostgresStore(pool)
        assert await tables.rows([EVALUATION]) == {}
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            await tables.months(["batch-1"])
        await Storage(log, tables, GAP_POLICY).store([EVALUATION])
