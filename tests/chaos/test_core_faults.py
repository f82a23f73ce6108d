"""Real faults on real servers in mid-run; afterwards all has ended, and the tables show no trace of it.

Leaving `disturbed` waits for the end of every evaluation and runs the checker: each ended, histories whole
and legal, counters equal to a recount, no event twice, nothing left in hand, and no gap to bridge.
"""

import asyncio
import time
from pathlib import Path

from psycopg import AsyncConnection, OperationalError

from tests.chaos.workload import Run, disturbed
from tests.waiting import until


async def test_killed_storage_worker(tmp_path: Path) -> None:
    """A worker that dies with wake-ups in hand and transactions open repeats, and counts nothing twice."""
    async with disturbed(tmp_path) as run:
        await run.kill_worker()
        await run.progress(0.5)
        await run.kill_worker()
    assert run.manager.children[0].restarts >= 2


async def test_killed_redis(tmp_path: Path) -> None:
    """Redis killed with its append-only file on: writers hold, then repeat; nothing is lost or doubled."""
    async with disturbed(tmp_path) as run:
        run.kill_redis()
        await run.progress(1)
        # What was committed when Redis went could not be acknowledged; a worker's next start does it.
        await run.kill_worker()


async def test_killed_postgres(tmp_path: Path) -> None:
    """Postgres killed whole: the worker waits with its wake-ups in hand, and catches up."""
    async with disturbed(tmp_path) as run:
        run.kill_postgres()
        await until(lambda: has_died(run))


async def has_died(run: Run) -> bool:
    """Whether Postgres is down, or was just now started again."""
    try:
        async with await AsyncConnection.connect(run.servers.postgres_url, connect_timeout=3) as conn:
            asked = await conn.execute("SELECT now() - pg_postmaster_start_time() < interval '3 s'")
            return bool((await asked.fetchone() or [False])[0])
    except OperationalError:
        return True


async def test_flushed_redis(tmp_path: Path) -> None:
    """Redis loses everything twice: writers put their tails back, groups are made anew, all ends."""
    async with disturbed(tmp_path) as run:
        await run.redis("FLUSHALL")
        await run.progress(0.5)
        await run.redis("FLUSHALL")


async def test_commits_with_unknown_result(tmp_path: Path) -> None:
    """Connections cut again and again, some in mid-commit: whatever had happened happens once."""
    async with disturbed(tmp_path) as run, asyncio.TaskGroup() as group:
        severed = group.create_task(sever_for(run, seconds=2))
    assert severed.result() > 10


async def sever_for(run: Run, *, seconds: float) -> int:
    """Cut the workers' connections every few milliseconds, and return how many were cut."""
    cut = (
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'scoreline'"
    )
    severed, until_then = 0, time.monotonic() + seconds
    async with await AsyncConnection.connect(run.servers.postgres_url, autocommit=True) as admin:
        while time.monotonic() < until_then:
            severed += (await (await admin.execute(cut)).fetchone() or [0])[0]
            await asyncio.sleep(0.02)
    return severed


async def test_stalled_redis(tmp_path: Path) -> None:
    """Redis answers nobody for longer than any time-out: calls of unknown fate are repeated safely."""
    async with disturbed(tmp_path) as run:
        await run.redis("CLIENT", "PAUSE", 6_000, "ALL")
        assert not await run.is_over()
        await run.progress(1)
        await run.kill_worker()  # as above: acknowledges what it had in hand


async def test_full_redis(tmp_path: Path) -> None:
    """Redis refuses every write for want of memory: writers hold what they have, then go on."""
    async with disturbed(tmp_path) as run:
        await run.redis("CONFIG", "SET", "maxmemory", 1)
        await until(lambda: is_refused(run))
        assert not await run.is_over()
        await run.redis("CONFIG", "SET", "maxmemory", 0)


async def is_refused(run: Run) -> bool:
    """Whether writers have met the refusal often enough to have noticed."""
    return await run.refusals() > 20


async def test_two_workers_through_every_fault(tmp_path: Path) -> None:
    """Two workers race for the same evaluations while everything around them dies in turn."""
    async with disturbed(tmp_path, workers=2, evaluations=400) as run:
        await run.kill_worker(0)
        await run.progress(0.3)
        run.kill_redis()
        await run.progress(0.5)
        run.kill_postgres()
        await run.progress(0.7)
        await run.redis("FLUSHALL")
        await run.kill_worker(1)
        await run.progress(1)
        await run.kill_worker(0)
        await run.kill_worker(1)
