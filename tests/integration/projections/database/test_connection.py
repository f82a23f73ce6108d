"""Connections to PostgreSQL: errors of the driver as ours, snapshots, and read-only sessions."""

import psycopg
import pytest
from psycopg import AsyncConnection, IsolationLevel
from psycopg.pq import TransactionStatus
from psycopg_pool import AsyncConnectionPool

from projections.database.connection import (
    connect_read_only,
    make_pool,
    one_snapshot,
    single_statement,
    transaction,
)
from projections.database.errors import DatabaseUnavailable, UnstorableData

INSERT = "INSERT INTO batches (batch_id, kind, month) VALUES ('b', 'external', now())"


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT 1 / 0",
        "INSERT INTO quarantine (id) VALUES (NULL)",
        "SELECT repeat('x', 1073741823) || 'y'",
    ],
    ids=["data", "integrity", "limit"],
)
async def test_data_that_the_database_rejects_is_unstorable(postgres_url: str, statement: str) -> None:
    """A retry would not help, also where the driver reports an operational error."""
    async with make_pool(postgres_url, size=1) as pool:
        with pytest.raises(UnstorableData) as raised:
            async with transaction(pool) as conn:
                await conn.execute(statement.encode())
    assert isinstance(raised.value.__cause__, psycopg.Error)


async def test_a_lost_connection_means_that_the_database_is_unavailable(postgres_url: str) -> None:
    """The server ended the session, so the transaction may or may not have committed."""
    async with make_pool(postgres_url, size=1) as pool:
        with pytest.raises(DatabaseUnavailable, match="terminating connection"):
            async with transaction(pool) as conn:
                await conn.execute("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize(
    "error",
    [psycopg.errors.DeadlockDetected("d"), psycopg.errors.SerializationFailure("s"), ValueError("v")],
)
async def test_errors_that_callers_retry_or_do_not_expect_pass_through(
    postgres_url: str, error: Exception
) -> None:
    """A deadlock is an operational error to the driver, and the database is there."""
    async with make_pool(postgres_url, size=1) as pool:
        with pytest.raises(type(error)) as raised:
            async with transaction(pool):
                raise error
    assert raised.value is error


async def test_a_failed_transaction_leaves_nothing(postgres_url: str) -> None:
    """The pooled connection is usable for the next one."""
    async with make_pool(postgres_url, size=1) as pool:
        with pytest.raises(UnstorableData):
            await insert_and_fail(pool)
        assert await count(pool) == 0


async def insert_and_fail(pool: AsyncConnectionPool) -> None:
    """Insert a batch, and let a later statement of the transaction fail."""
    async with transaction(pool) as conn:
        await conn.execute(INSERT)
        await conn.execute("SELECT 1 / 0")


async def count(pool: AsyncConnectionPool) -> int:
    """Count batches."""
    async with transaction(pool) as conn:
        [[found]] = await (await conn.execute("SELECT count(*) FROM batches")).fetchall()
        return int(found)


async def test_a_snapshot_does_not_see_later_commits(postgres_url: str) -> None:
    """The isolation level of the connection is reset afterwards."""
    sought = "SELECT count(*) FROM batches"
    async with (
        await AsyncConnection.connect(postgres_url, autocommit=True) as reader,
        await AsyncConnection.connect(postgres_url, autocommit=True) as writer,
    ):
        async with one_snapshot(reader):
            assert await (await reader.execute(sought)).fetchone() == (0,)
            await writer.execute(INSERT)
            assert await (await reader.execute(sought)).fetchone() == (0,)
        assert reader.isolation_level is None
        assert await (await reader.execute(sought)).fetchone() == (1,)


async def test_a_read_only_connection_refuses_to_write(postgres_url: str) -> None:
    """A report can't change what it reads."""
    async with await connect_read_only(postgres_url) as conn:
        assert conn.isolation_level is IsolationLevel.REPEATABLE_READ
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await conn.execute("DELETE FROM batches")


async def test_a_session_that_the_server_ended_is_replaced_before_it_is_used(postgres_url: str) -> None:
    """An idle socket that has become readable is checked; the others cost no round trip."""
    async with make_pool(postgres_url, size=1) as pool, await connect_read_only(postgres_url) as other:
        async with transaction(pool) as conn:
            pid = conn.info.backend_pid
        await other.execute("SELECT pg_terminate_backend(%s, 60000)", [pid])
        async with transaction(pool) as conn:
            assert conn.info.backend_pid != pid


async def test_a_silent_connection_is_not_checked(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check is a round trip before every transaction."""
    checked: list[object] = []

    async def note(conn: object) -> None:
        checked.append(conn)

    monkeypatch.setattr(AsyncConnectionPool, "check_connection", note)
    async with make_pool(postgres_url, size=1) as pool, transaction(pool) as conn:
        await conn.execute("SELECT 1")
    assert checked == []


async def test_a_single_statement_is_a_transaction_by_itself(postgres_url: str) -> None:
    """It is committed without a COMMIT; the next user of the connection has transactions again."""
    async with make_pool(postgres_url, size=1) as pool:
        async with single_statement(pool) as conn:
            await conn.execute(INSERT)
            assert conn.info.transaction_status is TransactionStatus.IDLE
        assert await count(pool) == 1
        async with transaction(pool) as conn:
            assert not conn.autocommit
