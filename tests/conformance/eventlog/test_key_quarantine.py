"""Keys of the wrong type on a real Redis: renamed and kept, while the commands that met them continue."""

import logging

import pytest
from redis.exceptions import ResponseError

from eventlog import keys
from eventlog.key_quarantine import expected_type, quarantine, with_quarantine
from eventlog.log import Append, CommitMark
from eventlog.redis_errors import QuarantineDeniedError
from eventlog.redis_streams import connect
from tests.builders import EVALUATION, event, history, records
from tests.conformance.eventlog.requests import DUPLICATE, OK, append


async def quarantined_keys(redis_form) -> list[str]:
    """Return the former names of quarantined keys."""
    found = [key.decode() async for key in redis_form.redis.scan_iter("eval:quarantine:*")]
    assert all([0 < await redis_form.redis.ttl(key) <= 7 * 24 * 3600 for key in found])
    return sorted(key.split(":", 3)[3] for key in found)


async def test_a_key_that_is_no_stream_is_quarantined_and_does_not_block_others(redis_form):
    """All evaluations of the call are written, and a new epoch reports the loss to writers."""
    same_shard = [each for each in map(str, range(99)) if keys.shard_of(each, redis_form.log.shards) == 0]
    bad, *good = same_shard[:3]
    before = await redis_form.log.epochs()
    name = redis_form.keys_of(bad)[0]
    await redis_form.redis.set(name, "no stream")
    calls = [Append(each, records([event("queued", evaluation_id=each)]), "") for each in (bad, *good)]
    await redis_form.log.append(calls)
    assert [len(raw) for raw in await redis_form.log.read([bad, *good], limit=10)] == [1, 1, 1]
    assert await quarantined_keys(redis_form) == [name]
    after = await redis_form.log.epochs()
    assert [old == new for old, new in zip(before, after, strict=True)] == [False, True, True, True]


@pytest.mark.parametrize("place", [1, 2, 3], ids=["fence", "wake-ups", "epoch"])
async def test_a_key_of_the_wrong_type_is_quarantined_and_appends_continue(redis_form, place):
    """Earlier events stay known, later events are appended, and the stream can be read."""
    await append(redis_form, *history("queued provisioning"))
    shard = keys.shard_of(EVALUATION, redis_form.log.shards)
    names = [*redis_form.keys_of(EVALUATION), keys.wake_key(shard), keys.epoch_key(shard)]
    await redis_form.redis.delete(names[place])
    await redis_form.redis.lpush(names[place], "of another type")
    assert await append(redis_form, *history("queued provisioning running")) == [DUPLICATE, DUPLICATE, OK]
    assert await quarantined_keys(redis_form) == [names[place]]
    assert len((await redis_form.log.read([EVALUATION], limit=10))[0]) >= 3


async def test_a_fence_of_the_wrong_type_does_not_block_commit_marks(redis_form):
    """Its own mark and those of other evaluations are set, and the attempt does not count as closed."""
    same_shard = [each for each in map(str, range(99)) if keys.shard_of(each, redis_form.log.shards) == 0]
    bad, good, other = same_shard[:3]
    for each in (bad, good, other):
        await redis_form.log.append([Append(each, records([event("queued", evaluation_id=each)]), "")])
    fence = redis_form.keys_of(bad)[1]
    for reader in ("closing", "committed", "settle"):
        await redis_form.redis.delete(fence)
        await redis_form.redis.set(fence, "no hash")
        if reader == "closing":
            assert await redis_form.log.closing([bad, good]) == [False, False]
        elif reader == "committed":
            assert await redis_form.log.committed([bad, good]) == [(0, -1), (0, -1)]
        else:
            await redis_form.log.settle(
                [CommitMark(each, 1, 0, ended=False) for each in (bad, good, other)]
            )
            assert await redis_form.log.committed([bad, good, other]) == [(1, 0)] * 3
    assert await quarantined_keys(redis_form) == [fence, fence]


async def test_only_keys_of_the_wrong_type_are_renamed(redis_form, caplog):
    """Keys of the expected type, of other programs, or without a value stay; each rename is logged."""
    registry, foreign = "eval:batches", "sessions:1"
    await redis_form.redis.hset(registry, "nightly", "1")
    await redis_form.redis.set(foreign, "of another program")
    await redis_form.redis.set("eval:executors", "no sorted set")
    with caplog.at_level(logging.ERROR):
        moved = await quarantine(redis_form.redis, [registry, foreign, "eval:executors", "eval:executor:a"])
    assert moved == 1
    assert await quarantined_keys(redis_form) == ["eval:executors"]
    assert await redis_form.redis.exists(registry, foreign) == 2
    [line] = caplog.records
    assert (line.key, line.found, line.expected) == ("eval:executors", "string", "zset")


async def test_a_command_that_fails_for_another_reason_is_not_repeated(redis_form):
    """Only a key that was moved makes a second run useful."""
    calls = []

    async def command():
        calls.append("run")
        raise ResponseError(text)

    for text in ("ERR value is not an integer", "WRONGTYPE of a key of another program"):
        with pytest.raises(ResponseError, match=text):
            await with_quarantine(redis_form.redis, ["sessions:1"], command)
    assert len(calls) == 2


async def test_a_user_without_the_permission_gets_an_error_with_the_key(redis_form, redis_url):
    """The error is transient: a storage worker or a coordinator renames the key."""
    await redis_form.redis.set("eval:executors", "no sorted set")
    rights = ("on", ">secret", "~*", "+@all", "-rename")
    await redis_form.redis.execute_command("ACL SETUSER", "denied", *rights)
    client = connect(redis_url.replace("unix://", "unix://denied:secret@"))
    try:
        with pytest.raises(QuarantineDeniedError, match="eval:executors; this user may not rename it"):
            await quarantine(client, ["eval:executors"])
    finally:
        await client.aclose()
        await redis_form.redis.execute_command("ACL DELUSER", "denied")
    assert await redis_form.redis.type("eval:executors") == b"string"


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("eval:{03}:events:e", "stream"),
        ("eval:{03}:wake", "stream"),
        ("eval:{03}:wake:of-another-program", None),
        ("eval:dlq:{nightly}", "stream"),
        ("eval:lane:{openai}", "hash"),
        ("eval:batches", "hash"),
        ("eval:batch:{nightly}", "string"),
        ("eval:quarantine:1:eval:batches", None),
        ("other:eval:batches", None),
    ],
)
def test_the_type_of_a_key_follows_from_its_name(key, kind):
    """A key of another program, and one that is already in quarantine, have no expected type."""
    assert expected_type(key) == kind
