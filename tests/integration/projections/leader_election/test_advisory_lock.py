"""Leader election on PostgreSQL: one leader, released with the block or with its session."""

from collections.abc import AsyncIterator

import psycopg
import pytest
from psycopg_pool import AsyncConnectionPool

from projections.database.connection import make_pool
from projections.leader_election.advisory_lock import (
    COORDINATOR,
    coordinator_lock,
    leader_quiet_for,
    leadership,
    led_runs,
)

LOCK = coordinator_lock("run-of-this-test")
TERMINATE = """
    SELECT pg_terminate_backend(pid)
    FROM pg_locks JOIN pg_database ON oid = database
    WHERE locktype = 'advisory' AND datname = current_database()
"""


@pytest.fixture
async def pool(postgres_url: str) -> AsyncIterator[AsyncConnectionPool]:
    async with make_pool(postgres_url, size=3) as made:
        yield made


async def test_one_of_two_leads(pool):
    """The second process is a standby, and leads once the first has left its block."""
    async with leadership(pool, LOCK) as first:
        assert first is not None
        await first()
        async with leadership(pool, LOCK) as second:
            assert second is None
    async with leadership(pool, LOCK) as second:
        assert second is not None


async def test_the_fleet_and_each_local_run_have_leaders_of_their_own(pool):
    """A local run does not wait for the fleet's coordinator, nor for another run."""
    assert coordinator_lock("") == COORDINATOR
    async with leadership(pool, COORDINATOR) as fleet, leadership(pool, LOCK) as run:
        assert fleet is not None
        assert run is not None
        async with pool.connection() as conn:
            assert await led_runs(conn, ["", "run-of-this-test", "another"]) == {"", "run-of-this-test"}


async def test_a_leader_that_lost_its_session_learns_it_and_a_standby_leads(pool, postgres_url):
    """The check after each cycle raises, so that the old leader stops; nothing has to expire first."""
    async with leadership(pool, LOCK) as old:
        assert old is not None
        async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as conn:
            assert (await (await conn.execute(TERMINATE)).fetchall()) == [(True,)]
        with pytest.raises(psycopg.OperationalError):
            await old()
        async with leadership(pool, LOCK) as new:
            assert new is not None
            await new()


async def test_a_failed_leader_releases_the_lock(pool, postgres_url):
    """An error in the block returns the connection to the pool without the lock."""

    async def fail_as_leader() -> None:
        async with leadership(pool, LOCK):
            assert await leader_quiet_for(postgres_url, LOCK) is not None
            raise LookupError

    with pytest.raises(LookupError):
        await fail_as_leader()
    assert await leader_quiet_for(postgres_url, LOCK) is None
