"""The event log on a real Redis: plain clients, script errors, lost scripts and refused commands."""

from pathlib import Path

import pytest
from redis.exceptions import DataError, ResponseError

import eventlog
from eventlog import keys
from eventlog.log import Append, CommitMark, LogUnavailable, Mode
from eventlog.redis_errors import RedisCommandError
from eventlog.redis_streams import RedisEventLog
from tests.builders import EVALUATION, event, history, raw_entry, records
from tests.conformance.eventlog.log_forms import RedisForm
from tests.conformance.eventlog.requests import (
    CLOSED,
    CONFLICT,
    DUPLICATE,
    EPOCH,
    FENCED,
    OK,
    append,
    append_call,
    rival,
    stream,
)

APPEND = (Path(eventlog.__file__).parent / "append.lua").read_text()


async def plainly(form: RedisForm, *events):
    for each in events:
        await form.plain_xadd(EVALUATION, raw_entry(each))


# A stream written with plain XADDs has no fence; the first append builds it from the stream.


async def test_the_fence_of_a_plain_stream_is_built_from_its_entries(redis_form):
    """Duplicates, conflicts, the newest attempt and the closing event are known as in a scripted stream."""
    events = history("queued provisioning running failed")
    await plainly(redis_form, *events)
    assert await append(redis_form, *events) == [DUPLICATE] * 4
    assert await append(redis_form, event("scored", sequence=4)) == [CLOSED]
    assert await append(redis_form, rival("running", sequence=2)) == [CONFLICT]
    assert await append(redis_form, rival("running", sequence=2)) == [CONFLICT]
    assert await append(redis_form, event("queued:operator", attempt=2)) == [OK]
    assert await append(redis_form, event("running", sequence=2)) == [FENCED]
    kept = [*events, rival("running", sequence=2), event("queued:operator", attempt=2)]
    assert await stream(redis_form) == kept


async def test_an_attempt_opened_by_a_plain_client_can_be_claimed(redis_form):
    """Exactly one executor claims an attempt that was opened with plain XADDs."""
    queued, claim = history("queued provisioning")
    await plainly(redis_form, queued)
    assert await append(redis_form, claim, mode=Mode.CLAIM) == [OK]
    assert await append(redis_form, rival("provisioning", sequence=1), mode=Mode.CLAIM) == [CONFLICT]


async def test_the_newest_attempt_of_a_plain_stream_counts(redis_form):
    """Stale events of a lower attempt in between have no effect."""
    await plainly(redis_form, *history("queued provisioning", attempt=2), *history("queued failed"))
    assert await append(redis_form, event("running", attempt=2, sequence=2)) == [OK]
    assert await append(redis_form, event("running", sequence=2)) == [FENCED]


async def test_the_earliest_closing_event_of_a_plain_stream_closes_it(redis_form):
    """Events that a client wrote beyond it have no effect."""
    await plainly(redis_form, event("queued"), event("failed", sequence=2), event("completed", sequence=5))
    assert await append(redis_form, event("running", sequence=3)) == [CLOSED]
    assert await append(redis_form, event("provisioning", sequence=1)) == [OK]


async def test_entries_that_are_no_events_do_not_change_the_fence(redis_form):
    """Entries without the fields of an event are left for the storage worker to quarantine."""
    stream_key, _ = redis_form.keys_of(EVALUATION)
    await redis_form.redis.xadd(stream_key, {"hello": "world"})
    await redis_form.redis.xadd(stream_key, {"attempt": "many", "sequence": "0", "event": "x"})
    assert await append(redis_form, *history("queued provisioning")) == [OK, OK]


async def test_a_plain_stream_expires_with_its_fence(redis_form):
    """Settling creates a fence that expires too, and a later conflict does not stop the expiry."""
    await plainly(redis_form, *history("queued failed"))
    await redis_form.log.settle([CommitMark(EVALUATION, 1, 1, ended=True)])
    assert await redis_form.is_expiring(EVALUATION)
    assert await append(redis_form, rival("queued", sequence=0)) == [CONFLICT]
    assert await redis_form.is_expiring(EVALUATION)


async def test_a_plain_stream_with_a_higher_attempt_does_not_expire(redis_form):
    """Without a fence the last entry has the newest attempt."""
    await plainly(redis_form, *history("queued failed"), event("queued:operator", attempt=2))
    await redis_form.log.settle([CommitMark(EVALUATION, 1, 1, ended=True)])
    assert not await redis_form.is_expiring(EVALUATION)


# The script.

STREAM, FENCE, WAKE, EPOCH_KEY = (
    keys.events_key(0, "e"),
    keys.append_state_key(0, "e"),
    keys.wake_key(0),
    keys.epoch_key(0),
)
GOOD = ["1", "0", "queued", "{}"]
REFUSED = {
    "attempt 0": ["0", "0", "queued", "{}"],
    "a negative attempt": ["-1", "0", "queued", "{}"],
    "half an attempt": ["1.5", "0", "queued", "{}"],
    "a word for an attempt": ["one", "0", "queued", "{}"],
    "a negative sequence": ["1", "-1", "queued", "{}"],
    "no sequence": ["1", "", "queued", "{}"],
    "no body": ["1", "0", "queued"],
    "no type": ["1", "0"],
}


@pytest.mark.parametrize("bad", REFUSED.values(), ids=REFUSED.keys())
async def test_refused_arguments_write_nothing(redis_form, bad):
    """The script checks all arguments before it writes, since Lua does not roll back."""
    with pytest.raises(ResponseError, match="append: each event"):
        await redis_form.redis.eval(APPEND, 4, STREAM, FENCE, WAKE, EPOCH_KEY, "", "normal", *GOOD, *bad)
    assert await redis_form.redis.dbsize() == 0


async def test_a_key_without_an_evaluation_id_writes_nothing(redis_form):
    """No wake-up could be written for it, so no event is."""
    with pytest.raises(ResponseError, match="append: the first key"):
        await redis_form.redis.eval(APPEND, 4, "stream", FENCE, WAKE, EPOCH_KEY, "", "normal", *GOOD)
    assert await redis_form.redis.dbsize() == 0


async def test_events_of_more_evaluations_than_keys_are_refused(redis_form):
    """An empty argument separates evaluations; more events than keys make the call invalid."""
    with pytest.raises(ResponseError, match="append: each event"):
        await redis_form.redis.eval(
            APPEND, 4, STREAM, FENCE, WAKE, EPOCH_KEY, "", "normal", *GOOD, "", *GOOD
        )
    assert await redis_form.redis.dbsize() == 0


async def test_values_that_no_command_can_carry_are_refused_before_sending(redis_form):
    """With or without hiredis, a value that is not text, bytes or a number is an error."""
    with pytest.raises(DataError):
        await redis_form.redis.set("key", None)


async def test_a_long_tail_is_recorded_event_by_event(redis_form):
    """All events of a call are known afterwards, even if they do not fit in one HSET."""
    tail = history("provisioning running responded" + " scored" * 300, first=1)
    assert await append(redis_form, *tail, mode=Mode.TAIL) == [OK] * 303
    assert await append(redis_form, *tail, mode=Mode.TAIL) == [DUPLICATE] * 303


# The epoch: a random key and the server's run id.


async def test_an_opening_of_another_epoch_cannot_be_claimed(redis_form):
    """If Redis restarted without its last seconds, the coordinator opens the attempt again."""
    await append(redis_form, event("queued"))
    await redis_form.redis.hset(redis_form.keys_of(EVALUATION)[1], "epoch", "of-another-life")
    assert await append(redis_form, event("provisioning", sequence=1), mode=Mode.CLAIM) == [EPOCH]
    assert await append(redis_form, event("queued:lost", attempt=2)) == [OK]
    assert await append(redis_form, event("provisioning", attempt=2, sequence=1), mode=Mode.CLAIM) == [OK]


async def test_the_epoch_identifies_the_process_and_the_data(redis_form):
    """A restarted server that kept its data has another run id, hence another epoch."""
    run_id = (await redis_form.redis.info("server"))["run_id"]
    assert (await redis_form.log.epoch(EVALUATION)).endswith(run_id[:12])


# Refused commands.


async def test_a_full_redis_is_unavailable_and_writes_nothing(redis_form):
    """Out of memory is an outage: the writer retries, and no part of the call is written."""
    epoch = await redis_form.log.epoch(EVALUATION)
    await redis_form.redis.config_set("maxmemory", "1")
    try:
        with pytest.raises(LogUnavailable):
            await append_call(redis_form, *history("queued provisioning"), epoch=epoch)
    finally:
        await redis_form.redis.config_set("maxmemory", "0")
    assert await stream(redis_form) == []
    assert await append(redis_form, *history("queued provisioning")) == [OK, OK]


async def test_a_denied_command_surfaces_with_keys_and_advice(redis_form, redis_url):
    """NOPERM is no outage, and is not retried; the error names the missing permission."""
    await redis_form.redis.execute_command(
        "ACL SETUSER", "denied", "on", ">secret", "~other:*", "+@all", "-time"
    )
    log = RedisEventLog.from_url(redis_url.replace("unix://", "unix://denied:secret@"))
    try:
        with pytest.raises(RedisCommandError, match=r"(?s)time.*users.acl"):
            await log.now_ms()
        with pytest.raises(RedisCommandError, match=r"(?s)append.lua, keys eval:.*users.acl"):
            await log.append([Append(EVALUATION, records(history("queued")), epoch="")])
    finally:
        await log.aclose()
        await redis_form.redis.execute_command("ACL DELUSER", "denied")


async def test_a_wrong_password_surfaces(redis_url):
    """A refused login is no outage, though the client reports it as a connection error."""
    log = RedisEventLog.from_url(redis_url.replace("unix://", "unix://denied:wrong@"))
    with pytest.raises(RedisCommandError, match="EVAL_REDIS_URL"):
        await log.now_ms()
    await log.aclose()


async def test_an_unreachable_server_is_unavailable():
    """Every call raises `LogUnavailable`."""
    log = RedisEventLog.from_url("redis://127.0.0.1:1/0")
    with pytest.raises(LogUnavailable):
        await log.epoch(EVALUATION)
    with pytest.raises(LogUnavailable):
        await log.read([EVALUATION], limit=1)
    with pytest.raises(LogUnavailable):
        await log.settle([CommitMark(EVALUATION, 1, 0, ended=False)])
    with pytest.raises(LogUnavailable):
        await log.committed([EVALUATION])
    with pytest.raises(LogUnavailable):
        await log.now_ms()
    await log.aclose()
