"""One leader among many, for thrift: an advisory lock that lasts as long as its connection."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from datetime import timedelta
from hashlib import blake2b

import psycopg
from psycopg_pool import AsyncConnectionPool

from projections.database.connection import Connection
from projections.sql import query

COORDINATOR = 7_265_004

Holds = Callable[[], Awaitable[None]]
"""Asks whether the lock is still held; raises what ended the connection if it is not."""


def coordinator_lock(run_id: str) -> int:
    """Return the advisory lock of the coordinator that leads: one for the fleet, one for each local run."""
    if not run_id:
        return COORDINATOR
    return int.from_bytes(blake2b(run_id.encode(), digest_size=8).digest(), "big", signed=True)


@asynccontextmanager
async def leadership(pool: AsyncConnectionPool, lock: int) -> AsyncIterator[Holds | None]:
    """Lead while the block lasts; None where somebody else does."""
    async with pool.connection() as conn:
        await conn.set_autocommit(True)
        try:
            cursor = await conn.execute("SELECT pg_try_advisory_lock(%s)", [lock])
            leads = (await cursor.fetchone() or [False])[0]

            async def holds() -> None:
                await conn.execute("SELECT 1")  # the lock is gone when the connection is

            yield holds if leads else None
        finally:
            with suppress(psycopg.Error):
                await conn.execute("SELECT pg_advisory_unlock_all()")
                await conn.set_autocommit(False)


async def leader_quiet_for(postgres_url: str, lock: int) -> timedelta | None:
    """Say how long ago whoever leads was last heard of; None where nobody leads."""
    async with await psycopg.AsyncConnection.connect(postgres_url) as conn:
        return await leader_quiet(conn, lock)


async def leader_quiet(conn: Connection, lock: int) -> timedelta | None:
    """Say the same by a connection that is there."""
    found = await (await conn.execute(query("leader_quiet_for"), {"lock": lock})).fetchone()
    return found[0] if found else None


async def led_runs(conn: Connection, run_ids: Iterable[str]) -> set[str]:
    """Return those of these runs that a coordinator leads."""
    held = {lock for (lock,) in await (await conn.execute(query("leader_locks"))).fetchall()}
    return {run_id for run_id in run_ids if coordinator_lock(run_id) in held}
