"""Links that are cut, silent, half closed, slow, or break in the middle of a reply."""

from tests.chaos.link import (
    Link,
    deafly,
    mid_reply,
    silently,
    slowly,
    without_commit_replies,
)
from tests.chaos.run import Run
from tests.waiting import until

LINK_FAULTS = ("cut", "closed", "silent", "deaf", "slow", "mid-reply")
"""Silent and deaf may outlast the clients' time-outs of a second; the others make themselves known."""


async def commit_reply_lost(run: Run) -> None:
    """The way to Postgres breaks at commits, before them or before their reply: the retry is a no-op."""
    await run.moment(0.0, 0.2)
    way = run.world.links.worker_to_postgres
    async with way.behaving(without_commit_replies(run.rng, 0.5)):
        before = way.cuts
        await until(lambda: way.cuts > before, 60)
        await run.moment(0.4, 0.9)


async def worker_parted_from_redis(run: Run) -> None:
    """The way between worker and Redis fails in several manners: it reconnects, and stores all once."""
    await _disturb(run, run.world.links.worker_to_redis)


async def worker_parted_from_postgres(run: Run) -> None:
    """The way between worker and Postgres fails in several manners: nothing is acknowledged meanwhile."""
    await _disturb(run, run.world.links.worker_to_postgres)


async def writer_parted_from_redis(run: Run) -> None:
    """The way between writers and Redis fails in several manners: they ask again, and double nothing."""
    await _disturb(run, run.world.links.writer_to_redis)


async def _disturb(run: Run, way: Link) -> None:
    """Two kinds of fault, one after the other, while the batch is written."""
    for number, kind in enumerate(run.rng.sample(LINK_FAULTS, 2)):
        await run.moment(0.05 + 0.3 * number, 0.3 + 0.3 * number)
        match kind:
            case "cut":
                await _cut_often(run, way)
            case "closed":
                async with way.closed():
                    await run.pause(0.1, 0.5)
            case "silent":
                async with way.behaving(silently):
                    await run.pause(0.2, 1.3)
            case "deaf":
                async with way.behaving(deafly):
                    await run.pause(0.2, 1.3)
            case "slow":
                async with way.behaving(slowly(run.rng, 0.05)):
                    await run.pause(0.2, 0.8)
            case "mid-reply":
                async with way.behaving(mid_reply(run.rng, 0.1)):
                    await run.pause(0.2, 0.6)


async def _cut_often(run: Run, way: Link) -> None:
    for _ in range(run.rng.randint(1, 5)):
        await way.cut()
        await run.pause(0.0, 0.1)
