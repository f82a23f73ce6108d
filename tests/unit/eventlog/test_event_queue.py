"""A writer's queue: numbered, in company, through outages, and never twice."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from redis.exceptions import NoPermissionError

from eventlog import payloads as p
from eventlog.codec import OversizeEvent
from eventlog.commands import Fact
from eventlog.event_queue import AttemptLost, EventQueue, OwnedAttempt, QueueSettings
from eventlog.lifecycle import IllegalTransition
from eventlog.log import Append, AppendResponse, AppendResult
from eventlog.redis_errors import RedisCommandError
from tests.builders import BATCH, CASE, EVALUATION, event, payload, records
from tests.unit.eventlog.faulty_log import FaultyLog
from tests.waiting import until

QUICK = QueueSettings(linger=0.0, release_interval=3600, longest_backoff=0.001)
UNHURRIED = QueueSettings(linger=3600, release_interval=3600)


@pytest.fixture
async def log() -> FaultyLog:
    return FaultyLog()


@pytest.fixture
async def queue(log: FaultyLog) -> AsyncIterator[EventQueue]:
    async with started(log) as queue:
        yield queue


@asynccontextmanager
async def started(log: FaultyLog, settings: QueueSettings = QUICK) -> AsyncIterator[EventQueue]:
    """Run a queue, and leave it without waiting for what a test has made impossible to send."""
    queue = EventQueue(log, source="test", settings=settings)
    await queue.__aenter__()
    try:
        yield queue
    finally:
        await queue.aclose(grace=0.0)


def opened(queue: EventQueue, evaluation_id: str = EVALUATION, *, attempt: int = 1) -> OwnedAttempt:
    """Own an attempt outright, and open it."""
    owned = queue.own(evaluation_id, BATCH, attempt=attempt)
    owned.open(p.Queued(case=CASE))
    return owned


def record(owned: OwnedAttempt, words: str) -> None:
    for word in words.split():
        fact: Fact = payload(word)  # type: ignore[assignment]  # the words used here are all facts
        owned.record(fact)


async def elsewhere(log: FaultyLog, word: str, *, attempt: int, sequence: int) -> None:
    """Let somebody else write into the evaluation's stream."""
    said = event(word, attempt=attempt, sequence=sequence, source="elsewhere")
    await log.memory.append([Append(EVALUATION, records([said]), epoch="")])


# Numbering.


async def test_events_are_numbered_in_the_order_of_recording(log, queue):
    """One attempt, from 0, without a hole."""
    owned = opened(queue, attempt=3)
    record(owned, "provisioning running responded scored completed")
    await owned.acknowledged()
    events = await log.events(EVALUATION)
    assert [each.key for each in events] == [(3, n) for n in range(6)]
    assert [each.type for each in events][-2:] == ["scored", "completed"]
    assert {(each.batch_id, each.source) for each in events} == {(BATCH, "test")}


async def test_what_can_not_follow_is_refused_and_takes_no_number(log, queue):
    """The lifecycle is asked first: a gap in the numbers would look like a loss."""
    owned = opened(queue)
    with pytest.raises(IllegalTransition):
        record(owned, "completed")
    record(owned, "provisioning failed")
    await owned.acknowledged()
    assert await log.keys(EVALUATION) == [(1, 0), (1, 1), (1, 2)]


async def test_what_is_too_large_is_refused_and_takes_no_number(log, queue):
    """The owner hears of it while it can still record something smaller."""
    owned = opened(queue)
    record(owned, "provisioning running")
    huge = p.Score(evaluator="judge", score=1.0, reason="x" * (p.MAX_TEXT - 1))
    with pytest.raises(OversizeEvent):
        owned.record(p.Completed(verdict="passed", scores=(huge,) * 3))
    record(owned, "completed")
    await owned.acknowledged()
    assert await log.keys(EVALUATION) == [(1, n) for n in range(4)]


# Company.


async def test_events_travel_in_company(log):
    """Everything recorded within the linger, of all attempts, shares one round trip."""
    async with started(log, QueueSettings(linger=0.05, release_interval=3600)) as queue:
        first, second = opened(queue, "e-1"), opened(queue, "e-2")
        record(first, "provisioning running")
        record(second, "provisioning")
        await asyncio.gather(first.acknowledged(), second.acknowledged())
    (round_trip,) = log.round_trips
    assert [(call.evaluation_id, len(call.records)) for call in round_trip] == [("e-1", 3), ("e-2", 2)]


async def test_a_closing_event_flushes_at_once(log):
    """An owner that has finished waits for nobody."""
    async with started(log, UNHURRIED) as queue:
        waiting, done = opened(queue, "e-1"), opened(queue, "e-2")
        record(done, "provisioning failed")
        await done.acknowledged()
        assert await log.keys("e-2") == [(1, 0), (1, 1), (1, 2)]
        assert (waiting.depth, await log.keys("e-1")) == (1, [])


async def test_what_is_recorded_in_flight_makes_up_the_next_call(log, queue):
    """One call of an attempt is out at a time, which keeps its order."""
    log.may_answer.clear()
    owned = opened(queue)
    await until(lambda: log.round_trips)
    record(owned, "provisioning running")
    assert owned.depth == 3
    log.may_answer.set()
    await owned.acknowledged()
    assert [len(call.records) for (call,) in log.round_trips] == [1, 2]
    assert await log.keys(EVALUATION) == [(1, 0), (1, 1), (1, 2)]


# Outages.


@pytest.mark.parametrize("fault", ["unreached", "reply lost"])
async def test_an_outage_loses_and_doubles_nothing(log, queue, fault):
    """Whether the calls had happened or not, the stream ends up with each event once."""
    log.fail(*[fault] * 4)
    owned = opened(queue)
    for word in ("provisioning", "running", "responded", "completed"):
        record(owned, word)
        await asyncio.sleep(0)
    await owned.acknowledged()
    assert await log.keys(EVALUATION) == [(1, n) for n in range(5)]
    assert not log.fates


async def test_a_queue_outlives_a_mixed_outage_of_many_attempts(log, queue):
    """Failures of both kinds, in between, over several evaluations."""
    log.fail("reply lost", "unreached", "reply lost", "unreached", "unreached")
    owned = [opened(queue, f"e-{number}") for number in range(20)]
    for each in owned:
        record(each, "provisioning running completed")
        await asyncio.sleep(0)
    await asyncio.gather(*(each.acknowledged() for each in owned))
    for number in range(20):
        assert await log.keys(f"e-{number}") == [(1, n) for n in range(4)]


async def test_what_arrives_is_measured(log):
    """Whoever wants to know learns how long each call's events took to be on record."""
    delays: list[float] = []
    queue = EventQueue(log, source="test", settings=QUICK, observe=delays.append)
    async with queue:
        await opened(queue).acknowledged()
    assert len(delays) == 1
    assert delays[0] >= 0


async def test_a_refused_command_does_not_silence_the_queue(log, queue, monkeypatch):
    """One bad reply (MISCONF, BUSY, NOREPLICAS) is retried or reported; events do not wait for ever."""
    working = log.memory.append

    async def refuses_once(calls):
        monkeypatch.setattr(log.memory, "append", working)
        raise ValueError("MISCONF")

    monkeypatch.setattr(log.memory, "append", refuses_once)
    owned = opened(queue)
    async with asyncio.timeout(0.5):
        await owned.acknowledged()


# Losing an attempt.


async def test_a_fenced_attempt_is_lost_to_its_owner(log, queue):
    """The owner is told at the next word, and its events go nowhere."""
    owned = opened(queue)
    await owned.acknowledged()
    await elsewhere(log, "cancelled", attempt=2, sequence=0)
    record(owned, "provisioning")
    with pytest.raises(AttemptLost) as lost:
        await owned.acknowledged()
    assert (lost.value.answer, lost.value.attempt) == (AppendResult.FENCED, 1)
    with pytest.raises(AttemptLost):
        record(owned, "running")
    assert await log.keys(EVALUATION) == [(1, 0), (2, 0)]
    assert queue.outbox.bytes == 0


async def test_an_attempt_somebody_else_wrote_to_is_lost(log, queue):
    """A conflict means the same to an owner as a fence: stop."""
    owned = opened(queue)
    await owned.acknowledged()
    await elsewhere(log, "provisioning", attempt=1, sequence=1)
    record(owned, "provisioning running")
    with pytest.raises(AttemptLost) as lost:
        await owned.acknowledged()
    assert lost.value.answer is AppendResult.CONFLICT
    assert list(queue.outbox) == []


async def test_losing_one_attempt_leaves_the_others_alone(log, queue):
    """Each attempt has its own fate."""
    doomed, fine = opened(queue), opened(queue, "e-2")
    await asyncio.gather(doomed.acknowledged(), fine.acknowledged())
    await elsewhere(log, "cancelled", attempt=2, sequence=0)
    record(doomed, "provisioning")
    record(fine, "provisioning running")
    await fine.acknowledged()
    with pytest.raises(AttemptLost):
        await doomed.acknowledged()


# Room, and the end.


async def test_a_full_outbox_has_no_room_for_another_attempt(log):
    """Unsent events stop the claiming, not the recording."""
    settings = QueueSettings(linger=3600, release_interval=3600, max_bytes=2_000)
    async with started(log, settings) as queue:
        owned = opened(queue)
        room = [queue.outbox.has_capacity]
        record(owned, "provisioning running")
        room.append(queue.outbox.has_capacity)
        assert room == [True, False]
        owned.record(p.Responded(output="x" * 10_000))
        assert owned.depth == 4


async def test_closing_the_queue_flushes_it(log):
    """A good-bye is no loss, even in the middle of an outage."""
    queue = EventQueue(log, source="test", settings=QUICK)
    async with queue:
        owned = opened(queue)
        record(owned, "provisioning running")
        log.fail("unreached", "reply lost")
    assert await log.keys(EVALUATION) == [(1, 0), (1, 1), (1, 2)]


async def test_closing_in_an_endless_outage_says_what_was_left(log):
    """Patience ends, and the number of unsent events is returned."""
    log.fail(*["unreached"] * 10_000)
    queue = EventQueue(log, source="test", settings=QUICK)
    await queue.__aenter__()
    owned = opened(queue)
    record(owned, "provisioning")
    assert await queue.aclose(grace=0.02) == 2
    assert await log.keys(EVALUATION) == []


class RejectingLog(FaultyLog):
    """A log whose server rejects appends and reads until an operator grants the right."""

    granted = False

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        if not self.granted:
            raise RedisCommandError(NoPermissionError("no permissions to run the 'evalsha' command"))
        return await super().append(calls)


async def test_a_permanent_error_is_logged_once_and_events_are_kept(caplog):
    """It is no outage: one error names what Redis rejects. Once the right is granted, all is sent."""
    log = RejectingLog()
    async with started(log) as queue:
        owned = opened(queue)
        await until(lambda: "users.acl" in str([vars(each).get("error") for each in caplog.records]))
        await asyncio.sleep(0.02)
        assert [each.message for each in caplog.records] == [
            "Redis rejects this writer's events: holding them"
        ]
        assert queue.is_disconnected
        log.granted = True
        await owned.acknowledged()
    assert len(log.round_trips) == 1
