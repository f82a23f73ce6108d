"""The event queue of a writer: it numbers events, sends them in batches, and retries without duplicates."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest
from redis.exceptions import NoPermissionError

from eventlog import payloads as p
from eventlog.codec import OversizeEvent
from eventlog.event_queue import AttemptLost, EventQueue, OwnedAttempt, QueueSettings
from eventlog.lifecycle import Fact, IllegalTransition
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
    """Run a queue, and stop it without waiting for events that the test has made impossible to send."""
    queue = EventQueue(log, source="test", settings=settings)
    await queue.__aenter__()
    try:
        yield queue
    finally:
        await queue.aclose(grace=0.0)


def opened(queue: EventQueue, evaluation_id: str = EVALUATION, *, attempt: int = 1) -> OwnedAttempt:
    """Register an attempt with the queue without a claim, and open it."""
    owned = queue.own(evaluation_id, BATCH, attempt=attempt)
    owned.open(p.Queued(case=CASE))
    return owned


def record(owned: OwnedAttempt, words: str) -> None:
    for word in words.split():
        fact: Fact = payload(word)  # type: ignore[assignment]  # the words used here are all facts
        owned.record(fact)


async def elsewhere(log: FaultyLog, word: str, *, attempt: int, sequence: int) -> None:
    """Append an event of another writer to the evaluation's stream."""
    foreign = event(word, attempt=attempt, sequence=sequence, source="elsewhere")
    await log.memory.append([Append(EVALUATION, records([foreign]), epoch="")])


# Numbering.


async def test_events_are_numbered_in_the_order_of_recording(log, queue):
    """The events of an attempt get consecutive sequences from 0."""
    owned = opened(queue, attempt=3)
    record(owned, "provisioning running responded scored completed")
    await owned.acknowledged()
    events = await log.events(EVALUATION)
    assert [each.key for each in events] == [(3, n) for n in range(6)]
    assert [each.type for each in events][-2:] == ["scored", "completed"]
    assert {(each.batch_id, each.source) for each in events} == {(BATCH, "test")}


async def test_an_illegal_event_is_refused_and_takes_no_sequence(log, queue):
    """The lifecycle is checked before a sequence is assigned: a skipped one would look like a loss."""
    owned = opened(queue)
    with pytest.raises(IllegalTransition):
        record(owned, "completed")
    record(owned, "provisioning failed")
    await owned.acknowledged()
    assert await log.keys(EVALUATION) == [(1, 0), (1, 1), (1, 2)]


async def test_an_oversize_event_is_refused_and_takes_no_sequence(log, queue):
    """The queue raises at once, so the owner can record a smaller event instead."""
    owned = opened(queue)
    record(owned, "provisioning running")
    huge = p.Score(evaluator="judge", score=1.0, reason="x" * (p.MAX_TEXT - 1))
    with pytest.raises(OversizeEvent):
        owned.record(p.Completed(verdict="passed", scores=(huge,) * 3))
    record(owned, "completed")
    await owned.acknowledged()
    assert await log.keys(EVALUATION) == [(1, n) for n in range(4)]


# Coalescing.


async def test_events_are_sent_in_batches(log):
    """All events recorded within the linger time, of all attempts, share one round trip."""
    async with started(log, QueueSettings(linger=0.05, release_interval=3600)) as queue:
        first, second = opened(queue, "e-1"), opened(queue, "e-2")
        record(first, "provisioning running")
        record(second, "provisioning")
        await asyncio.gather(first.acknowledged(), second.acknowledged())
    (round_trip,) = log.round_trips
    assert [(call.evaluation_id, len(call.records)) for call in round_trip] == [("e-1", 3), ("e-2", 2)]


async def test_a_closing_event_flushes_at_once(log):
    """A closing event does not wait for the linger time."""
    async with started(log, UNHURRIED) as queue:
        waiting, done = opened(queue, "e-1"), opened(queue, "e-2")
        record(done, "provisioning failed")
        await done.acknowledged()
        assert await log.keys("e-2") == [(1, 0), (1, 1), (1, 2)]
        assert (waiting.depth, await log.keys("e-1")) == (1, [])


async def test_events_recorded_in_flight_are_sent_with_the_next_call(log, queue):
    """At most one call per attempt is in flight, which preserves the order of its events."""
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
async def test_an_outage_neither_loses_nor_duplicates_events(log, queue, fault):
    """Whether the failed calls had been executed or not, the stream ends up with each event once."""
    log.fail(*[fault] * 4)
    owned = opened(queue)
    for word in ("provisioning", "running", "responded", "completed"):
        record(owned, word)
        await asyncio.sleep(0)
    await owned.acknowledged()
    assert await log.keys(EVALUATION) == [(1, n) for n in range(5)]
    assert not log.outcomes


async def test_a_mixed_outage_of_many_attempts_loses_nothing(log, queue):
    """Failures before and after execution alternate over several evaluations; each stream is complete."""
    log.fail("reply lost", "unreached", "reply lost", "unreached", "unreached")
    owned = [opened(queue, f"e-{number}") for number in range(20)]
    for each in owned:
        record(each, "provisioning running completed")
        await asyncio.sleep(0)
    await asyncio.gather(*(each.acknowledged() for each in owned))
    for number in range(20):
        assert await log.keys(f"e-{number}") == [(1, n) for n in range(4)]


async def test_append_latency_is_measured(log):
    """The queue reports for every call how long its events took to be acknowledged."""
    delays: list[float] = []
    queue = EventQueue(log, source="test", settings=QUICK, observe=delays.append)
    async with queue:
        await opened(queue).acknowledged()
    assert len(delays) == 1
    assert delays[0] >= 0


async def test_a_rejected_command_does_not_stop_the_queue(log, queue, monkeypatch):
    """After an error reply (MISCONF, BUSY, NOREPLICAS) the queue continues and sends its events."""
    working = log.memory.append

    async def refuses_once(calls):
        monkeypatch.setattr(log.memory, "append", working)
        raise ValueError("MISCONF")

    monkeypatch.setattr(log.memory, "append", refuses_once)
    owned = opened(queue)
    async with asyncio.timeout(0.5):
        await owned.acknowledged()


# Losing an attempt.


async def test_an_owner_loses_a_fenced_attempt(log, queue):
    """The next `record` raises, and no event of the attempt is appended."""
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


async def test_an_owner_loses_an_attempt_with_a_conflict(log, queue):
    """An event of another writer under the same key ends the attempt for its owner, as a fence does."""
    owned = opened(queue)
    await owned.acknowledged()
    await elsewhere(log, "provisioning", attempt=1, sequence=1)
    record(owned, "provisioning running")
    with pytest.raises(AttemptLost) as lost:
        await owned.acknowledged()
    assert lost.value.answer is AppendResult.CONFLICT
    assert list(queue.outbox) == []


async def test_losing_one_attempt_does_not_affect_others(log, queue):
    """The queue continues to send the events of its other attempts."""
    doomed, fine = opened(queue), opened(queue, "e-2")
    await asyncio.gather(doomed.acknowledged(), fine.acknowledged())
    await elsewhere(log, "cancelled", attempt=2, sequence=0)
    record(doomed, "provisioning")
    record(fine, "provisioning running")
    await fine.acknowledged()
    with pytest.raises(AttemptLost):
        await doomed.acknowledged()


# Capacity and shutdown.


async def test_a_full_outbox_has_no_room_for_another_attempt(log):
    """Unsent events block new claims, but not the recording of events."""
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
    """A queue that is closed during an outage sends its events when the outage ends."""
    queue = EventQueue(log, source="test", settings=QUICK)
    async with queue:
        owned = opened(queue)
        record(owned, "provisioning running")
        log.fail("unreached", "reply lost")
    assert await log.keys(EVALUATION) == [(1, 0), (1, 1), (1, 2)]


async def test_closing_in_an_endless_outage_returns_the_unsent_count(log):
    """After its time-out `close` returns the number of unsent events."""
    log.fail(*["unreached"] * 10_000)
    queue = EventQueue(log, source="test", settings=QUICK)
    await queue.__aenter__()
    owned = opened(queue)
    record(owned, "provisioning")
    assert await queue.aclose(grace=0.02) == 2
    assert await log.keys(EVALUATION) == []


class RejectingLog(FaultyLog):
    """A log whose server rejects appends and reads until an operator grants the permission."""

    granted = False

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        if not self.granted:
            raise RedisCommandError(NoPermissionError("no permissions to run the 'evalsha' command"))
        return await super().append(calls)


async def test_a_permanent_error_is_logged_once_and_events_are_kept(caplog):
    """One error names the rejected command, and the events are sent once the permission is granted."""
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
