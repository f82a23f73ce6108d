"""Storage workers that die: at named points, in each other's company, and all at once."""

from redis.asyncio import Redis

from eventlog.keys import DEFAULT_SHARDS, GROUP, wake_key
from tests.chaos.run import Run
from tests.chaos.worker import AFTER_COMMIT, BEFORE_COMMIT
from tests.waiting import until

LATEST_CALL = 3
"""A batch makes at least one call a shard, so that the worker is sure to die."""
CLAIMS_AT_ONCE = 4
BURIED = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'scoreline'"


async def worker_dies_before_commit(run: Run) -> None:
    """A worker is killed with its transaction open: nothing was written, the wake-ups are read again."""
    await _die(run, run.rng.choice(BEFORE_COMMIT))


async def worker_dies_after_commit(run: Run) -> None:
    """A worker is killed between commit and XACK: what is read again changes nothing."""
    await _die(run, run.rng.choice(AFTER_COMMIT))


async def _die(run: Run, point: str) -> None:
    await run.moment(0.0, 0.3)
    await run.world.workers.muster(1, dies=point, dies_at_call=run.rng.randint(1, LATEST_CALL))
    await until(lambda: run.noted()["worker killed"] > 0, 60)


async def two_workers_killed(run: Run) -> None:
    """Two workers race for the same evaluations and are killed in turn: each event is counted once."""
    for turn, number in enumerate((0, 1, run.rng.randrange(2))):
        await run.moment(0.05 + 0.2 * turn, 0.25 + 0.2 * turn)
        await run.world.workers.kill(number)


async def redelivery_storm(run: Run) -> None:
    """All workers are killed with all wake-ups pending: others take them over, few at a time."""
    await run.world.workers.dismiss()
    await until(run.all_written.is_set, 60)
    async with run.world.postgres() as conn, conn.transaction():
        await conn.execute("LOCK TABLE evaluations")
        await run.world.workers.muster(2, called="deceased")
        await until(lambda: _all_pending(run), 60)
        await run.world.workers.dismiss()
        await until(lambda: _all_gone(run), 60)
    await run.world.workers.muster(2, called="heir", claim_idle=0.3, take_over_count=CLAIMS_AT_ONCE)
    await run.until_ended()
    most = CLAIMS_AT_ONCE * DEFAULT_SHARDS
    takings = [
        int(word.removeprefix("take-over of ")) for word in run.noted() if word.startswith("take-over")
    ]
    run.complaints += [f"{taken} wake-ups were claimed at once" for taken in takings if taken > most]


async def _all_pending(run: Run) -> bool:
    async with Redis.from_url(run.world.servers.redis_url) as redis:
        groups = [await redis.xinfo_groups(wake_key(shard)) for shard in range(DEFAULT_SHARDS)]
    held: int = sum(
        group["pending"] for found in groups for group in found if group["name"].decode() == GROUP
    )
    return held >= len(run.expected.evaluations)


async def _all_gone(run: Run) -> bool:
    """Whether the server has buried the dead's questions: none may be answered when the lock is gone."""
    async with run.world.postgres() as conn:
        return (await (await conn.execute(BURIED)).fetchone()) is None
