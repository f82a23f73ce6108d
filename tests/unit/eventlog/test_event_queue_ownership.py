"""The event queue of a writer: claims, tails that are re-appended after data loss, and their release."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from eventlog import payloads as p
from eventlog.codec import decode_body
from eventlog.event_queue import AttemptLost, Claimed, EventQueue
from eventlog.log import EXPIRY_SECONDS, Append, AppendResult, CommitMark, Mode
from tests.builders import BATCH, EVALUATION, event, records
from tests.unit.eventlog.faulty_log import FaultyLog
from tests.unit.eventlog.test_event_queue import QUICK, opened, record, started
from tests.waiting import until


@pytest.fixture
async def log() -> FaultyLog:
    return FaultyLog()


@pytest.fixture
async def queue(log: FaultyLog) -> AsyncIterator[EventQueue]:
    async with started(log) as queue:
        yield queue


async def publish(log: FaultyLog, evaluation_id: str = EVALUATION, *, attempt: int = 1) -> None:
    """Append an opening as the coordinator does."""
    opening = event("queued", evaluation_id=evaluation_id, attempt=attempt)
    await log.memory.append([Append(evaluation_id, records([opening]), epoch="")])


async def claim(queue: EventQueue, evaluation_id: str = EVALUATION, *, by: str = "executor-1") -> Claimed:
    return await queue.claim(
        evaluation_id, BATCH, attempt=1, claim=p.Provisioning(executor=by, nonce=f"{by}:1")
    )


def modes(log: FaultyLog) -> list[Mode]:
    return [call.mode for round_trip in log.round_trips for call in round_trip]


# Claims.


async def test_a_claim_returns_the_stream_and_continues_it(log, queue):
    """The owner gets the recorded events, and its next event is sequence 2."""
    await publish(log)
    claimed = await claim(queue)
    bodies = [fields[fields.index(b"event") + 1] for _, fields in claimed.stream]
    assert [decode_body(body).type for body in bodies] == ["queued", "provisioning"]
    record(claimed.attempt, "running completed")
    await claimed.attempt.acknowledged()
    assert await log.keys(EVALUATION) == [(1, n) for n in range(4)]


async def test_a_claim_whose_reply_was_lost_is_still_owned(log, queue):
    """The queue repeats the claim with the same nonce, and the stream has it once."""
    await publish(log)
    log.fail("reply lost", "unreached", "reply lost")
    claimed = await claim(queue)
    assert len(claimed.stream) == 2
    assert await log.keys(EVALUATION) == [(1, 0), (1, 1)]


async def test_a_claim_accepted_before_a_restart_is_still_owned(log, queue):
    """The claim survives the change of epoch; dropped, it would leave an attempt without an owner."""
    await publish(log)
    log.fail("reply lost in a restart")
    claimed = await claim(queue)
    record(claimed.attempt, "running completed")
    await claimed.attempt.acknowledged()
    assert await log.keys(EVALUATION) == [(1, n) for n in range(4)]


async def test_a_claim_that_never_arrived_before_a_restart_is_dropped(log, queue):
    """The queue repeats the claim, and the log refuses it because its opening is of another epoch."""
    await publish(log)
    log.fail("unreached")
    log.memory.restart()
    with pytest.raises(AttemptLost) as lost:
        await claim(queue)
    assert lost.value.answer is AppendResult.EPOCH
    assert await log.keys(EVALUATION) == [(1, 0)]


async def test_exactly_one_of_many_claimants_is_the_owner(log):
    """The log refuses all other claims, although every other reply was lost."""
    await publish(log)
    log.fail(*["reply lost", "unreached"] * 10)
    async with started(log) as queue:
        claims = [claim(queue, by=f"executor-{number}") for number in range(10)]
        results = await asyncio.gather(*claims, return_exceptions=True)
    owners = [result for result in results if isinstance(result, Claimed)]
    refusals = [result.answer for result in results if isinstance(result, AttemptLost)]
    assert (len(owners), refusals) == (1, [AppendResult.CONFLICT] * 9)
    assert await log.keys(EVALUATION) == [(1, 0), (1, 1)]


async def test_an_attempt_that_is_not_open_cannot_be_claimed(log, queue):
    """A task whose attempt has no opening is dropped, and the queue keeps nothing of it."""
    with pytest.raises(AttemptLost) as lost:
        await claim(queue)
    assert lost.value.answer is AppendResult.FENCED
    assert (list(queue.outbox), queue.outbox.bytes) == ([], 0)


async def test_a_claim_after_data_loss_is_dropped_and_tails_are_re_appended(log, queue):
    """On EPOCH the queue drops tasks that are not claimed yet and re-appends the attempts it owns."""
    await publish(log)
    mine = await claim(queue)
    log.memory.lose_everything()
    await publish(log)
    with pytest.raises(AttemptLost) as lost:
        await claim(queue, by="executor-2")
    assert lost.value.answer is AppendResult.EPOCH
    await mine.attempt.acknowledged()
    assert await log.keys(EVALUATION) == [(1, 0), (1, 1)]


# Data loss in Redis.


async def test_each_tail_is_re_appended_in_one_call_after_data_loss(log, queue):
    """Acknowledged and new events are sent together; the stream is complete except for its opening."""
    attempts = []
    for name in ("e-1", "e-2", "e-3"):
        await publish(log, name)
        attempts.append((await claim(queue, name)).attempt)
        record(attempts[-1], "running responded")
        await attempts[-1].acknowledged()
    log.memory.lose_everything()
    log.round_trips.clear()
    for owned in attempts:
        record(owned, "scored")
    await asyncio.gather(*(owned.acknowledged() for owned in attempts))
    for name in ("e-1", "e-2", "e-3"):
        assert await log.keys(name) == [(1, 1), (1, 2), (1, 3), (1, 4)]
        tails = [
            c for trip in log.round_trips for c in trip if c.evaluation_id == name and c.mode is Mode.TAIL
        ]
        assert [len(tail.records) for tail in tails] == [4]
    record(attempts[0], "completed")
    await attempts[0].acknowledged()
    assert modes(log)[-1] is Mode.NORMAL


@pytest.mark.parametrize("fault", ["unreached", "reply lost"])
async def test_a_tail_survives_an_outage_of_its_own(log, queue, fault):
    """If the re-append fails, the queue sends the whole tail again in one call."""
    await publish(log)
    owned = (await claim(queue)).attempt
    log.memory.lose_everything()
    log.fail("fine", fault, fault)
    record(owned, "running")
    await owned.acknowledged()
    assert not log.outcomes
    assert await log.keys(EVALUATION) == [(1, 1), (1, 2)]


async def test_an_idle_writer_detects_data_loss(log, queue):
    """The release loop reads the new epoch and re-appends the acknowledged events."""
    await publish(log)
    owned = (await claim(queue)).attempt
    record(owned, "running completed")
    await owned.acknowledged()
    log.memory.lose_everything()
    await queue.release_committed()
    await owned.acknowledged()
    assert await log.keys(EVALUATION) == [(1, 1), (1, 2), (1, 3)]


async def test_an_attempt_superseded_during_data_loss_is_lost(log, queue):
    """The coordinator opened the next attempt first, so the log fences the tail."""
    await publish(log)
    owned = (await claim(queue)).attempt
    log.memory.lose_everything()
    await publish(log, attempt=2)
    record(owned, "running")
    with pytest.raises(AttemptLost):
        await owned.acknowledged()
    assert await log.keys(EVALUATION) == [(2, 0)]


async def test_an_epoch_change_during_the_first_read_is_detected():
    """Two claims read a shard's epoch concurrently, and the data loss happens between the two replies."""
    log = FaultyLog(shards=1)
    await publish(log)
    lost = asyncio.Event()

    async def second_waits_for_the_loss(evaluation_id: str) -> None:
        if evaluation_id == "e-2":
            await lost.wait()

    log.before_epoch = second_waits_for_the_loss
    async with started(log) as queue:
        second = asyncio.create_task(claim(queue, "e-2"))
        await asyncio.sleep(0)
        mine = (await claim(queue)).attempt
        log.memory.lose_everything()
        lost.set()
        with pytest.raises(AttemptLost):
            await second
        await mine.acknowledged()
    assert await log.keys(EVALUATION) == [(1, 1)]


# Release of tails.


async def completed(log: FaultyLog, queue: EventQueue, evaluation_id: str = EVALUATION) -> None:
    owned = opened(queue, evaluation_id)
    record(owned, "provisioning running completed")
    await owned.acknowledged()


async def test_a_tail_is_released_once_postgres_has_it(log, queue):
    """The queue keeps the tail until the commit mark reaches the closing event."""
    await completed(log, queue)
    await queue.release_committed()
    assert len(list(queue.outbox)) == 1
    await log.memory.settle([CommitMark(EVALUATION, 1, 2, ended=False)])
    await queue.release_committed()
    assert len(list(queue.outbox)) == 1
    await log.memory.settle([CommitMark(EVALUATION, 1, 3, ended=True)])
    await queue.release_committed()
    assert (list(queue.outbox), queue.outbox.bytes) == ([], 0)


async def test_an_expired_stream_releases_its_tail(log, queue):
    """Streams expire only after Postgres has them, so within an epoch a missing stream is a stored one."""
    await completed(log, queue)
    await log.memory.settle([CommitMark(EVALUATION, 1, 3, ended=True)])
    log.clock_ms += EXPIRY_SECONDS * 1000
    await queue.release_committed()
    assert list(queue.outbox) == []


async def test_a_stream_lost_with_redis_releases_nothing(log, queue):
    """After a change of epoch a missing stream proves nothing, and the queue keeps its tail."""
    await completed(log, queue)
    log.memory.lose_everything()
    await queue.release_committed()
    (buffer,) = queue.outbox
    await queue.until_acknowledged(buffer)
    assert await log.keys(EVALUATION) == [(1, n) for n in range(4)]


async def test_data_loss_during_a_release_pass_releases_nothing():
    """Commit marks from before the loss are ignored, even if the tail is back when the epoch is read."""
    log = FaultyLog(shards=1)

    async def lose_and_put_back() -> None:
        log.memory.lose_everything()
        await opened(queue, "e-2").acknowledged()
        await until(lambda: buffer.acknowledged)

    async with started(log) as queue:
        await completed(log, queue)
        (buffer,) = queue.outbox
        await log.memory.settle([CommitMark(EVALUATION, 1, 3, ended=True)])
        log.clock_ms += EXPIRY_SECONDS * 1000
        log.after_committed = lose_and_put_back
        await queue.release_committed()
        assert buffer in list(queue.outbox)
        assert await log.keys(EVALUATION) == [(1, n) for n in range(4)]


async def test_a_superseded_attempt_is_released_without_a_closing_event(log, queue):
    """Postgres has a higher attempt, so no event of this one is needed any more."""
    await publish(log)
    await claim(queue)
    await publish(log, attempt=2)
    await log.memory.settle([CommitMark(EVALUATION, 2, 0, ended=False)])
    await queue.release_committed()
    assert list(queue.outbox) == []


async def test_the_release_loop_runs_periodically(log):
    """Tails are released without a call by their owner."""
    settings = type(QUICK)(linger=0.0, release_interval=0.005)
    async with started(log, settings) as queue:
        await completed(log, queue)
        await log.memory.settle([CommitMark(EVALUATION, 1, 3, ended=True)])
        await until(lambda: not list(queue.outbox))


async def test_a_stream_whose_tail_is_being_re_appended_is_not_taken_for_expired(log, queue):
    """The commit mark was read before the tail arrived, so the missing stream proves nothing."""
    owned = opened(queue)
    record(owned, "provisioning running completed")
    await owned.acknowledged()
    log.memory.lose_everything()
    [buffer] = queue.outbox
    queue._learn_epoch(buffer, await log.epoch(buffer.evaluation_id))
    log.after_committed = owned.acknowledged
    await queue.release_committed()
    assert list(queue.outbox) == [buffer]
