"""Steps of tests with wake-ups and storage workers."""

from redis.asyncio import Redis

from eventlog.events import Event
from eventlog.keys import DEFAULT_SHARDS, GROUP, shard_of, wake_key
from tests.builders import history
from tests.integration.worker import (
    Site,
)

LIFE = "queued provisioning running responded scored completed"


def life(evaluation_id: str) -> list[Event]:
    return history(LIFE, evaluation_id=evaluation_id)


async def completed(here: Site, evaluation_id: str) -> bool:
    return await here.state(evaluation_id) == "completed"


async def deliver_unseen(redis: Redis, evaluation_id: str, *, consumer: str) -> None:
    """Deliver a new wake-up to a consumer that does not see it, before another consumer can read it."""
    stream = wake_key(shard_of(evaluation_id, DEFAULT_SHARDS))
    async with redis.pipeline(transaction=True) as pipe:
        pipe.xadd(stream, {"id": evaluation_id})
        pipe.xreadgroup(GROUP, consumer, {stream: ">"})
        _, taken = await pipe.execute()
    assert taken


async def nothing_pending(here: Site) -> bool:
    return await here.pending() == 0
