"""Background loops of a storage worker on real servers: lost wake-ups, dead workers, and trimming."""

from datetime import timedelta

from tests.integration.storage_worker.wake_up_steps import completed, deliver_unseen, life, nothing_pending
from tests.integration.worker import WAKE_STREAMS, Site, worker
from tests.waiting import until


async def test_wake_ups_of_a_dead_worker_are_claimed(here: Site) -> None:
    """A live worker claims wake-ups that have been pending with another consumer for too long."""
    async with worker(here, claim_idle=timedelta(milliseconds=90)):
        await here.add_plainly(life("orphan"), wake=False)
        await deliver_unseen(here.redis, "orphan", consumer="dead")
        await until(lambda: here.state("orphan"))
        await until(lambda: nothing_pending(here))


async def test_the_sweep_finds_an_event_whose_wake_up_was_lost(here: Site) -> None:
    """Without a wake-up the event is stored later, but it is stored.

    The first read of a worker that starts, and its first scan, may come late and store the first of them
    by chance; only a sweep stores the second.
    """
    async with worker(here):
        await complete_without_wake_up(here, "unsung")
        await complete_without_wake_up(here, "unsung-again")


async def complete_without_wake_up(here: Site, evaluation_id: str) -> None:
    first, *rest = life(evaluation_id)
    await here.add_plainly([first])
    await until(lambda: here.state(evaluation_id))
    await until(lambda: nothing_pending(here))
    await here.add_plainly(rest, wake=False)
    await until(lambda: completed(here, evaluation_id))


async def test_wake_up_streams_are_trimmed(here: Site) -> None:
    """Entries that every group has read are trimmed by whole nodes."""
    stream = WAKE_STREAMS[0]
    async with worker(here):
        async with here.redis.pipeline(transaction=False) as pipe:
            for _ in range(1_000):
                pipe.xadd(stream, {"id": "unknown"})
            await pipe.execute()
        await until(lambda: shorter(here, stream, 200))


async def shorter(here: Site, stream: str, length: int) -> bool:
    return await here.redis.xlen(stream) < length
