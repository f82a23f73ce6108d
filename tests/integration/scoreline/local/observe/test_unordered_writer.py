"""The unordered writer: events of an external batch, backwards, with a gap and with garbage."""

import json

from redis import Redis

from eventlog.keys import events_key, shard_of, wake_key
from scoreline.local.observe.unordered_writer import BACKWARDS, UnorderedWriter

SHARDS = 4


async def test_histories_arrive_in_the_wrong_order(redis_url: str) -> None:
    """Each evaluation is in its own shard, whose wake stream names it once."""
    assert await UnorderedWriter(redis_url, "foreign", SHARDS).write() == BACKWARDS + 2
    with Redis.from_url(redis_url, decode_responses=True) as redis:

        def sequences(name: str) -> list[str]:
            key = f"foreign.{name}"
            entries = redis.xrange(events_key(shard_of(key, SHARDS), key))
            return [fields["sequence"] for _, fields in entries]

        assert sequences("with-a-gap") == ["0", "1", "3"]
        assert sequences("with-garbage") == ["0", "1", "2", "3", "4"]
        assert sequences("backwards-0") == ["3", "2", "1", "0"]
        woken = [fields["id"] for shard in range(SHARDS) for _, fields in redis.xrange(wake_key(shard))]
    assert len(woken) == len(set(woken)) == BACKWARDS + 2


async def test_only_the_garbage_is_no_event(redis_url: str) -> None:
    """Every other entry has a JSON object of the batch."""
    await UnorderedWriter(redis_url, "foreign", SHARDS).write()
    key = "foreign.with-garbage"
    with Redis.from_url(redis_url, decode_responses=True) as redis:
        entries = redis.xrange(events_key(shard_of(key, SHARDS), key))
    *events, garbage = [fields["event"] for _, fields in entries]
    assert {json.loads(event)["batch_id"] for event in events} == {"foreign"}
    assert garbage == "no event"
