"""A writer's queue: in which epoch all that it keeps is on record, shard by shard."""

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


async def test_a_writer_without_anything_confirms_what_it_has_observed(log, queue):
    """Nothing before the first read; then every shard, and whoever waits for it goes on."""
    assert queue.confirmed == ("",) * log.shards
    await queue.release_committed()
    assert queue.confirmed == await epochs(log)
    assert queue.confirmation.is_set()


async def test_a_restart_is_confirmed_once_the_tails_are_acknowledged(log, queue):
    """Until then the shard of the tail is not; the others are."""
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


async def test_a_claim_of_unknown_fate_holds_its_shard_back(log, queue):
    """It may have been accepted before the restart, and then it is this writer's."""
    await publish(log)
    await queue.release_committed()
    log.fail("reply lost in a restart", *["unreached"] * 8)
    claiming = asyncio.create_task(claim(queue))
    await until(lambda: len(log.fates) < 8)
    held = shard_of(EVALUATION, log.shards)
    queue._observe_epoch(held, (await epochs(log))[held])
    assert not queue.confirmed[held]
    await claiming
    assert queue.confirmed[held] == (await epochs(log))[held]


async def test_a_claim_in_the_current_epoch_holds_nothing_back(log, queue):
    """An executor that claims all the time still confirms."""
    await publish(log)
    await queue.release_committed()
    log.may_answer.clear()
    claiming = asyncio.create_task(claim(queue))
    await until(lambda: log.round_trips)
    assert queue.confirmed == await epochs(log)
    log.may_answer.set()
    await claiming


async def test_a_change_seen_in_one_shard_has_all_of_them_read(log):
    """At once: the next look would come in an hour."""
    settings = QueueSettings(linger=0.0, release_interval=3600)
    async with started(log, settings) as queue:
        await queue.release_committed()
        queue.confirmation.clear()
        log.memory.restart()
        await opened(queue).acknowledged()
        now = await epochs(log)
        await until(lambda: queue.confirmed == now)
        assert queue.confirmation.is_set()
