"""Leader election by an advisory lock of PostgreSQL, held as long as its connection lives.

The lock saves duplicate work. It does not protect data: every write is a compare-and-set or idempotent.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from hashlib import blake2b

import psycopg
from psycopg_pool import AsyncConnectionPool

from projections.database.connection import Connection
from projections.sql import query

COORDINATOR = 7_265_004
QUIET = timedelta(minutes=2)
"""How long a leader may be silent: it checks its lock after every cycle, and a cycle takes seconds."""

CheckHeld = Callable[[], Awaitable[None]]
"""Checks that the lock is still held; raises the error that ended its connection if not."""


def coordinator_lock(run_id: str) -> int:
    """Return the advisory lock of the leading coordinator: one for the fleet, one per local run."""
    if not run_id:
        return COORDINATOR
    return int.from_bytes(blake2b(run_id.encode(), digest_size=8).digest(), "big", signed=True)


@asynccontextmanager
async def leadership(pool: AsyncConnectionPool, lock: int) -> AsyncIterator[CheckHeld | None]:
    """Try to become the leader for the duration of the block; yields None where another process leads."""
    async with pool.connection() as conn:
        await conn.set_autocommit(True)
        try:
            cursor = await conn.execute("SELECT pg_try_advisory_lock(%s)", [lock])
            leads = (await cursor.fetchone() or [False])[0]

            async def check_held() -> None:
                await conn.execute("SELECT 1")  # the lock is lost with the connection

            yield check_held if leads else None
        finally:
            with suppress(psycopg.Error):
                await conn.execute("SELECT pg_advisory_unlock_all()")
                await conn.set_autocommit(False)


async def leader_quiet_for(postgres_url: str, lock: int) -> timedelta | None:
    """Return how long the leader's connection has been idle; None without a leader."""
    async with await psycopg.AsyncConnection.connect(postgres_url) as conn:
        return await leader_quiet(conn, lock)


async def leader_quiet(conn: Connection, lock: int) -> timedelta | None:
    """Return how long the leader's connection has been idle, on an open connection."""
    row = await (await conn.execute(query("leader_quiet_for"), {"lock": lock})).fetchone()
    return row[0] if row else None


async def led_runs(conn: Connection, run_ids: Iterable[str]) -> set[str]:
    """Return those of these runs that a coordinator leads."""
    held = {lock for (lock,) in await (await conn.execute(query("leader_locks"))).fetchall()}
    return {run_id for run_id in run_ids if coordinator_lock(run_id) in held}
