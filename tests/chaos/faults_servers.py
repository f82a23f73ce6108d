"""Redis and Postgres that stall, die, fill up and forget."""

import asyncio
import time

from redis.asyncio import Redis

from tests.chaos.full_disk import fill, small_disk
from tests.chaos.run import Run
from tests.waiting import until

SEVER = "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'scoreline'"


async def redis_stalls(run: Run) -> None:
    """Redis answers no request, often beyond any time-out: requests of unknown outcome are repeated."""
    await run.moment()
    await run.world.redis("CLIENT", "PAUSE", run.rng.randint(200, 2_000), "ALL")


async def redis_killed(run: Run) -> None:
    """Redis is killed and started again from its append-only file: nothing is lost."""
    await run.moment()
    await run.world.kill_redis()


async def redis_loses_power(run: Run) -> None:
    """The end of Redis' append-only file is torn off: writers put back what is missing."""
    await run.moment()
    await run.world.lose_redis(run.rng)


async def redis_lost_whole(run: Run) -> None:
    """Redis starts again with nothing: groups begin at 0, tails come back, every evaluation ends."""
    await run.moment()
    await run.world.lose_redis()


async def redis_flushed(run: Run) -> None:
    """FLUSHALL, twice: the same loss while everybody stays connected."""
    await run.moment(0.05, 0.4)
    await run.world.redis("FLUSHALL")
    await run.moment(0.4, 0.9)
    await run.world.redis("FLUSHALL")


async def redis_full(run: Run) -> None:
    """Redis refuses every write for want of memory: writers hold what they have, then go on."""
    await run.moment()
    before = await _refusals(run)
    await run.world.redis("CONFIG", "SET", "maxmemory", 1)
    await until(lambda: _is_refused(run, before), 60)
    await run.pause(0.0, 0.5)
    await run.world.redis("CONFIG", "SET", "maxmemory", 0)


async def _is_refused(run: Run, before: int) -> bool:
    return run.all_written.is_set() or await _refusals(run) > before + 3


async def _refusals(run: Run) -> int:
    async with Redis.from_url(run.world.servers.redis_url) as client:
        errors = await client.info("errorstats")
    return int(errors.get("errorstat_OOM", {}).get("count", 0))


async def postgres_killed(run: Run) -> None:
    """Postgres is killed whole: the worker keeps its wake-ups, waits, and catches up."""
    await run.moment()
    await run.world.kill_postgres()


async def postgres_stopped(run: Run) -> None:
    """Postgres is stopped at once, as by `pg_ctl -m immediate stop`: the same."""
    await run.moment()
    await run.world.stop_postgres()


async def postgres_full(run: Run) -> None:
    """Postgres has no room for another page: nothing is acknowledged until there is."""
    async with run.world.links.writer_to_redis.closed():
        disk = await run.stack.enter_async_context(small_disk(run))
    await run.moment(0.0, 0.3)
    with fill(disk):
        await until(lambda: run.noted()["DatabaseUnavailable"] > 0, 60)
        await run.pause(0.1, 0.6)


async def commits_cut_by_the_server(run: Run) -> None:
    """Connections are terminated again and again, some in mid-commit: what had happened happens once."""
    await run.moment(0.0, 0.3)
    deadline = time.monotonic() + 0.3 + run.rng.random() * 0.7
    severed = 0
    async with run.world.postgres() as admin:
        while time.monotonic() < deadline or not severed:
            severed += (await (await admin.execute(SEVER)).fetchone() or [0])[0]
            await asyncio.sleep(run.rng.random() * 0.03)
