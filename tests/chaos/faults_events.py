"""Events that come twice, late, in another order, spoilt, contradicted or never; and clocks that jump."""

from redis.asyncio import Redis

from eventlog.codec import QuarantineReason, encode, fields_of
from eventlog.keys import DEFAULT_SHARDS, events_key, shard_of, wake_key
from tests.builders import history
from tests.chaos.checker import poison
from tests.chaos.mutations import (
    bring_back,
    until_written,
)
from tests.chaos.run import Run

FOREIGN = 5


async def events_disordered(run: Run) -> None:
    """Events come twice, late and in any order: the tables are as if they had not."""
    await until_written(run)


async def clocks_jump(run: Run) -> None:
    """Writers' clocks jump by hours while events overtake each other: order and gaps go by Redis' time."""
    await until_written(run)


async def events_dropped(run: Run) -> None:
    """Events get lost while clocks jump: their gaps, and no others, are bridged; the lost may come late."""
    await until_written(run)
    await run.until_ended()
    found = run.rng.sample(run.made_away_with, k=min(3, len(run.made_away_with)))
    await bring_back(run, found)


async def events_conflict(run: Run) -> None:
    """Another body under a known key is kept in the quarantine, and changes nothing."""
    await until_written(run)


async def events_corrupt(run: Run) -> None:
    """Torn, oversized, unknown, illegal: all in the quarantine, and no evaluation is held up by them."""
    keys = [f"{run.batch_id}-foreign-{number}" for number in range(FOREIGN)]
    run.expected.evaluations |= set(keys)
    for key in keys:
        await _write_illegal(run, key)
    run.expected.poison += poison(keys, QuarantineReason.ILLEGAL)
    await _wake_badly(run)
    await until_written(run)


async def _write_illegal(run: Run, key: str) -> None:
    """Complete before running, which is illegal, and then do it properly."""
    words = "queued provisioning completed running completed"
    async with Redis.from_url(run.world.servers.redis_url) as redis:
        shard = shard_of(key, DEFAULT_SHARDS)
        for event in history(words, evaluation_id=key, batch_id=run.batch_id):
            body = encode(event)
            await redis.xadd(events_key(shard, key), fields_of(event, body))  # type: ignore[arg-type]  # str, int or bytes
            await redis.xadd(wake_key(shard), {"id": key})


async def _wake_badly(run: Run) -> None:
    """Write wake-ups that name no evaluation."""
    async with Redis.from_url(run.world.servers.redis_url) as redis:
        for number, field in enumerate(("id", "di", "")):
            await redis.xadd(wake_key(number), {field: f"{run.batch_id}\x01{number}"})
    run.expected.poison += poison([None] * 3, QuarantineReason.BAD_WAKE_UP)
