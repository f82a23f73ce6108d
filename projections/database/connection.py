"""Connections to PostgreSQL: the pool, transactions, and the mapping of driver errors to ours."""

import select
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
from psycopg import AsyncConnection, IsolationLevel
from psycopg_pool import AsyncConnectionPool, PoolTimeout

from projections.database.errors import DatabaseUnavailable, UnstorableData
from projections.sql import query

Connection = AsyncConnection[Any]

UNAVAILABLE = (psycopg.OperationalError, psycopg.InterfaceError, PoolTimeout)
RETRIED = (psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)
BEYOND_LIMITS = (psycopg.errors.ProgramLimitExceeded, psycopg.errors.StatementTooComplex)
"""Operational errors to the driver, but permanent: the data exceeds a limit of the server."""


def make_pool(postgres_url: str, *, size: int) -> AsyncConnectionPool:
    """Make a connection pool; the caller opens it.

    No statement is prepared: a plan cached while a table was empty would stay bad for hours.
    """
    return AsyncConnectionPool(
        postgres_url,
        min_size=1,
        max_size=size,
        open=False,
        timeout=5,
        # The pool backs off exponentially up to this limit: with the default of five minutes, a long
        # outage is followed by one nearly as long.
        reconnect_timeout=5,
        kwargs={"prepare_threshold": None, "connect_timeout": 3, "application_name": "scoreline"},
        check=_check,
        configure=_configure,
    )


async def _check(conn: Connection) -> None:
    """Check a connection before it is used, without a round trip as long as it is silent.

    A server that ends a session, or its own process, makes the idle socket readable.
    """
    if readable(conn.fileno()):
        await AsyncConnectionPool.check_connection(conn)


def readable(descriptor: int) -> bool:
    """Whether data, or the end of it, has arrived at a socket."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(0))


async def _configure(conn: Connection) -> None:
    """Create the staging table of each connection."""
    await conn.execute(query("create_staged"))
    await conn.commit()


@asynccontextmanager
async def transaction(pool: AsyncConnectionPool) -> AsyncIterator[Connection]:
    """Run a block in a transaction on a pooled connection; driver errors become ours."""
    try:
        async with pool.connection() as conn:
            yield conn
    except RETRIED:
        raise
    except BEYOND_LIMITS as error:
        raise UnstorableData(str(error).strip()) from error
    except UNAVAILABLE as error:
        raise DatabaseUnavailable(str(error).strip() or type(error).__name__) from error
    except (psycopg.DataError, psycopg.IntegrityError, OverflowError) as error:
        raise UnstorableData(str(error).strip()) from error


@asynccontextmanager
async def single_statement(pool: AsyncConnectionPool) -> AsyncIterator[Connection]:
    """Run one statement on a pooled connection, a transaction by itself: BEGIN and COMMIT are not sent."""
    async with transaction(pool) as conn:
        await conn.set_autocommit(True)
        try:
            yield conn
        finally:
            if not conn.closed:
                await conn.set_autocommit(False)


@asynccontextmanager
async def one_snapshot(conn: Connection) -> AsyncIterator[None]:
    """Read everything in the block from one snapshot of the database (REPEATABLE READ)."""
    await conn.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    try:
        async with conn.transaction():
            yield
    finally:
        if not conn.closed:
            await conn.set_isolation_level(None)


async def connect_read_only(postgres_url: str) -> Connection:
    """Connect for reading only, each transaction on one snapshot (REPEATABLE READ)."""
    conn = await AsyncConnection.connect(postgres_url, connect_timeout=3, application_name="scoreline")
    await conn.set_isolation_level(IsolationLevel.REPEATABLE_READ)
    await conn.set_read_only(True)
    return conn
