"""The event queue confirms, for each shard, the epoch in which all its buffered events are acknowledged."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from eventlog.event_queue import EventQueue, QueueSettings
from eventlog.keys import shard_of
from tests.builders import EVALUATION
from tests.unit.eventlog.faulty_log import FaultyLog
from tests.unit.eventlog.test_event_queue import opened, started
from tests.unit.eventlog.test_event_queue_ownership import claim, publish
from tests.waiting import until


@pytest.fixture
async def log() -> FaultyLog:
    return FaultyLog()


@pytest.fixture
async def queue(log: FaultyLog) -> AsyncIterator[EventQueue]:
    async with started(log) as queue:
        yield queue


async def epochs(log: FaultyLog) -> tuple[str, ...]:
    return tuple(await log.epochs())


async def test_a_writer_without_events_confirms_the_epoch_it_has_read(log, queue):
    """No shard is confirmed before the first read; then every shard is, and waiting callers continue."""
    assert queue.confirmed == ("",) * log.shards
    await queue.release_committed()
    assert queue.confirmed == await epochs(log)
    assert queue.confirmation.is_set()


async def test_a_new_epoch_is_confirmed_once_the_tails_are_acknowledged(log, queue):
    """Until then the shard of the tail is not confirmed; the other shards are."""
    await opened(queue).acknowledged()
    await queue.release_committed()
    queue.confirmation.clear()
    log.memory.restart()
    log.may_answer.clear()
    await queue.release_committed()
    held = shard_of(EVALUATION, log.shards)
    now = await epochs(log)
    expected = tuple("" if shard == held else now[shard] for shard in range(log.shards))
    for _ in range(3):  # before it is sent, and while it is in flight
        assert (queue.confirmed, queue.confirmation.is_set()) == (expected, False)
        await asyncio.sleep(0)
    log.may_answer.set()
    await asyncio.wait_for(queue.confirmation.wait(), 10)
    assert queue.confirmed == now


async def test_a_claim_without_a_reply_delays_the_confirmation_of_its_shard(log, queue):
    """The claim may have been accepted before the restart, and this writer would own the attempt."""
    await publish(log)
    await queue.release_committed()
    log.fail("reply lost in a restart", *["unreached"] * 8)
    claiming = asyncio.create_task(claim(queue))
    await until(lambda: len(log.outcomes) < 8)
    held = shard_of(EVALUATION, log.shards)
    queue._observe_epoch(held, (await epochs(log))[held])
    assert not queue.confirmed[held]
    await claiming
    assert queue.confirmed[held] == (await epochs(log))[held]


async def test_a_claim_in_the_current_epoch_delays_nothing(log, queue):
    """An executor that claims continuously still confirms its shards."""
    await publish(log)
    await queue.release_committed()
    log.may_answer.clear()
    claiming = asyncio.create_task(claim(queue))
    await until(lambda: log.round_trips)
    assert queue.confirmed == await epochs(log)
    log.may_answer.set()
    await claiming


async def test_a_new_epoch_in_one_shard_triggers_a_read_of_all_shards(log):
    """The queue reads them at once; the next periodic read would be in an hour."""
    settings = QueueSettings(linger=0.0, release_interval=3600)
    async with started(log, settings) as queue:
        await queue.release_committed()
        queue.confirmation.clear()
        log.memory.restart()
        await opened(queue).acknowledged()
        now = await epochs(log)
        await until(lambda: queue.confirmed == now)
        assert queue.confirmation.is_set()
