"""The path of a batch of wake-ups, in memory: order, gaps, marks and the sweep."""

import logging
from datetime import timedelta

import pytest

from eventlog.lifecycle import Phase
from eventlog.log import EXPIRY_SECONDS, Append
from eventlog.timeline import Cursor
from storage_worker.gaps import BreakerLimits, GapBreaker
from storage_worker.wake_ups import WakeUpBatch, parse_wake_ups
from tests.builders import EVALUATION, event, history, records
from tests.storing import GAP_TIMEOUT, GAP_WARNING, PATIENCE, World

STRAIGHT = "queued provisioning running responded scored completed"
MOMENT = timedelta(milliseconds=1)


@pytest.fixture
def world() -> World:
    return World()


async def look(world: World, *evaluation_ids: str, **ports) -> None:
    """Let a new worker answer wake-ups."""
    await world.storage(**ports).process(WakeUpBatch(list(evaluation_ids or [EVALUATION])))


# Order.


async def test_events_in_order_are_stored_as_they_came(world):
    """The usual case: a history goes through, one wake-up after the other."""
    for each in history(STRAIGHT):
        world.xadd(each)
        await look(world)
    assert world.verdicts() == {(1, n): "applied" for n in range(6)}
    assert world.cursor() == Cursor(1, 5, Phase.COMPLETED)
    assert [progress.completed for progress in world.tables.progress.values()] == [1]


async def test_events_that_arrive_backwards_are_stored_in_order(world):
    """Nothing moves until the opening is there, then everything does."""
    for each in reversed(history(STRAIGHT)):
        world.xadd(each)
        await look(world)
    assert world.verdicts() == {(1, n): "applied" for n in range(6)}
    assert world.cursor() == Cursor(1, 5, Phase.COMPLETED)
    assert world.tables.bridges == {}


async def test_a_wake_up_for_nothing_stores_nothing(world):
    """An id whose stream is gone, or never was, is no evaluation."""
    await look(world, "unheard-of")
    assert world.tables.evaluations == {}


async def test_a_wake_up_that_comes_twice_changes_nothing_more(world):
    """Redelivery is harmless, and so is the same id twice in one batch."""
    world.xadd(*history(STRAIGHT))
    await look(world, EVALUATION, EVALUATION)
    before = dict(world.tables.events), dict(world.tables.scorecards)
    await look(world)
    assert (world.tables.events, world.tables.scorecards) == before
    assert [progress.total for progress in world.tables.progress.values()] == [1]


async def test_a_bad_wake_up_is_quarantined_and_its_neighbours_heard(world):
    """What is no id is kept with its reason, once."""
    world.xadd(*history("queued"))
    woken = parse_wake_ups([(b"1-0", {b"id": b"\xff"}), (b"2-0", {b"id": EVALUATION.encode()})])
    for _ in range(2):
        await world.storage().process(woken)
    assert world.reasons() == ["bad_wake_up"]
    assert world.cursor() == Cursor(1, 0, Phase.QUEUED)


# Gaps.


async def test_what_lies_beyond_a_gap_waits_until_the_time_out(world):
    """Up to the last millisecond the missing event may still come."""
    queued, claim, _, completed = history("queued provisioning running completed")
    world.xadd(queued, claim, completed)
    world.wait(GAP_TIMEOUT - MOMENT)
    await look(world)
    assert world.cursor() == Cursor(1, 1, Phase.PROVISIONING)
    assert world.tables.bridges == {}


async def test_a_gap_is_bridged_after_the_time_out_and_the_late_original_kept(world):
    """The hole is named, the scorecard flagged, and what turns up afterwards is late."""
    queued, claim, running, completed = history("queued provisioning running completed")
    world.xadd(queued, claim, completed)
    await look(world)
    world.wait(GAP_TIMEOUT)
    await look(world)
    assert world.cursor() == Cursor(1, 3, Phase.COMPLETED)
    assert world.tables.bridges == {(EVALUATION, 1, 3): (range(2, 3),)}
    assert world.tables.scorecards[EVALUATION].bridged
    world.xadd(running)
    for _ in range(2):
        await look(world)
    assert world.verdicts()[1, 2] == "late"
    assert [progress.bridged for progress in world.tables.progress.values()] == [1]


async def test_a_gap_whose_event_comes_in_time_leaves_no_trace(world):
    """However close it was."""
    queued, claim, running, completed = history("queued provisioning running completed")
    world.xadd(queued, claim, completed)
    world.wait(GAP_TIMEOUT - MOMENT)
    await look(world)
    world.xadd(running)
    world.wait(GAP_TIMEOUT)
    await look(world)
    assert (world.tables.bridges, set(world.verdicts().values())) == ({}, {"applied"})


async def test_a_gap_before_an_open_end_waits_for_ever(world):
    """Without a closing event the owner may still be at work."""
    queued, _, running = history("queued provisioning running")
    world.xadd(queued, running)
    world.wait(timedelta(days=30))
    await look(world)
    assert world.cursor() == Cursor(1, 0, Phase.QUEUED)


async def test_degraded_ordering_bridges_at_once(world):
    """Where finishing matters more than fidelity, nothing is waited for."""
    queued, *_, completed = history(STRAIGHT)
    world.xadd(queued, completed)
    await look(world, patience=PATIENCE.degraded())
    assert world.tables.bridges == {(EVALUATION, 1, 5): (range(1, 5),)}


async def test_when_gaps_become_the_rule_waiting_stops(world, caplog):
    """The breaker opens at the look that sees it, is announced, and the next look bridges."""
    queued, *_, completed = history(STRAIGHT)
    world.xadd(queued, completed)
    world.wait(GAP_WARNING)
    hurrying = world.storage(breaker=GapBreaker(BreakerLimits(rate=0.5, minimum=1)))
    await hurrying.process(WakeUpBatch([EVALUATION]))
    assert hurrying.is_degraded
    assert world.tables.bridges == {}
    assert "gap rate above threshold" in caplog.text
    await hurrying.process(WakeUpBatch([EVALUATION]))
    assert list(world.tables.bridges) == [(EVALUATION, 1, 5)]


async def test_an_old_gap_is_warned_of_once(world, caplog):
    """Not while jitter explains it, and not at every look."""
    caplog.set_level(logging.WARNING)
    queued, _, running = history("queued provisioning running")
    world.xadd(queued, running)
    storage = world.storage()
    for waited in (timedelta(0), GAP_WARNING, GAP_WARNING):
        world.wait(waited)
        await storage.process(WakeUpBatch([EVALUATION]))
    assert [record.message for record in caplog.records] == ["events are missing"]
    assert (storage.counts.gaps_warned, storage.counts.gaps_open) == (1, 1)


# Marks, expiry and the sweep.


async def append(world: World, *events) -> None:
    epoch = await world.log.epoch(EVALUATION)
    (reply,) = await world.log.append([Append(EVALUATION, records(events), epoch)])
    assert all(answer.acknowledged for answer in reply.results)


async def test_writers_are_told_how_far_it_is_committed(world):
    """The mark follows every commit, so that tails need not be kept longer."""
    events = history("queued provisioning running completed")
    for end in (1, 3, 4):
        await append(world, *events[:end])
        await look(world)
        assert await world.log.committed([EVALUATION]) == [(1, end - 1)]


async def test_an_ended_evaluation_leaves_the_log_and_an_open_one_stays(world):
    """What is committed for good expires; what is not may wait for ever."""
    await append(world, *history("queued provisioning running"))
    await look(world)
    world.wait(timedelta(seconds=EXPIRY_SECONDS))
    assert await world.log.committed([EVALUATION]) == [(1, 2)]
    await append(world, *history("completed", first=3))
    await look(world)
    world.wait(timedelta(seconds=EXPIRY_SECONDS))
    assert await world.log.committed([EVALUATION]) == [None]


async def test_a_reopened_evaluation_stays_in_the_log(world):
    """An operator's attempt persists the stream, and the storage worker does not undo that."""
    await append(world, *history("queued failed"))
    await look(world)
    await append(world, event("queued:operator", attempt=2))
    await look(world)
    world.wait(timedelta(seconds=EXPIRY_SECONDS))
    assert await world.log.committed([EVALUATION]) == [(2, 0)]


async def test_the_sweep_finds_what_no_wake_up_told_of(world):
    """It goes by the tables, page by page, and only to what has not moved for a while."""
    storage = world.storage()
    ids = [f"e{n}" for n in range(5)]
    world.xadd(*(event("queued", evaluation_id=key) for key in ids))
    await storage.process(WakeUpBatch(ids))
    for key in ids:
        world.xadd(*history("provisioning running completed", evaluation_id=key, first=1))
    assert await storage.sweep(unchanged_for=10, page=2) == 0
    world.wait(timedelta(seconds=11))
    assert await storage.sweep(unchanged_for=10, page=2) == 5
    assert {world.cursor(key).phase for key in ids} == {Phase.COMPLETED}
    assert await storage.sweep(unchanged_for=0, page=2) == 0


async def test_the_sweep_bridges_what_has_waited_too_long(world):
    """Nobody wakes a worker because time has passed."""
    queued, *_, completed = history(STRAIGHT)
    world.xadd(queued, completed)
    storage = world.storage()
    await storage.process(WakeUpBatch([EVALUATION]))
    world.wait(GAP_TIMEOUT)
    await storage.sweep(unchanged_for=15, page=100)
    assert world.cursor() == Cursor(1, 5, Phase.COMPLETED)
