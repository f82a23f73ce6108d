"""Every fault in turn, in an order drawn by lot, on two workers that race for the same evaluations."""

from collections.abc import Awaitable, Callable

from tests.chaos.link import mid_reply
from tests.chaos.run import Run

Blow = Callable[[Run], Awaitable[None]]


async def _kill_a_worker(run: Run) -> None:
    await run.world.workers.kill(run.rng.randrange(2))


async def _kill_redis(run: Run) -> None:
    await run.world.kill_redis()


async def _tear_redis(run: Run) -> None:
    await run.world.lose_redis(run.rng)


async def _flush_redis(run: Run) -> None:
    await run.world.redis("FLUSHALL")


async def _stall_redis(run: Run) -> None:
    await run.world.redis("CLIENT", "PAUSE", run.rng.randint(100, 600), "ALL")


async def _kill_postgres(run: Run) -> None:
    await run.world.kill_postgres()


async def _fray_links(run: Run) -> None:
    links = run.world.links
    async with (
        links.worker_to_redis.behaving(mid_reply(run.rng, 0.1)),
        links.worker_to_postgres.behaving(mid_reply(run.rng, 0.05)),
        links.writer_to_redis.behaving(mid_reply(run.rng, 0.05)),
    ):
        await run.pause(0.1, 0.3)


BLOWS: tuple[Blow, ...] = (
    _kill_a_worker,
    _kill_redis,
    _tear_redis,
    _flush_redis,
    _stall_redis,
    _kill_postgres,
    _fray_links,
)


async def everything_in_turn(run: Run) -> None:
    """Two workers while everything around them dies, stalls, forgets and breaks: none of it shows."""
    for number, blow in enumerate(run.rng.sample(BLOWS, len(BLOWS))):
        await run.progress(0.02 + 0.12 * number)
        await blow(run)
