"""Processing of wake-ups in memory: order, gaps, commit marks and the sweep."""

import logging
from datetime import timedelta

import pytest

from eventlog.lifecycle import Phase
from eventlog.log import EXPIRY_SECONDS, Append
from eventlog.timeline import Cursor
from storage_worker.consumer import parse_wake_ups
from storage_worker.gaps import BreakerLimits, GapBreaker
from tests.builders import EVALUATION, event, history, records
from tests.storage_world import GAP_POLICY, GAP_TIMEOUT, GAP_WARNING, World

STRAIGHT = "queued provisioning running responded scored completed"
MOMENT = timedelta(milliseconds=1)


@pytest.fixture
def world() -> World:
    return World()


async def process(world: World, *evaluation_ids: str, **ports) -> None:
    """Process wake-ups with a new worker."""
    await world.storage(**ports).process(evaluation_ids or [EVALUATION])


# Order.


async def test_events_in_order_are_stored_in_order(world):
    """A history that arrives in order is applied, one wake-up after another."""
    for each in history(STRAIGHT):
        world.xadd(each)
        await process(world)
    assert world.verdicts() == {(1, n): "applied" for n in range(6)}
    assert world.cursor() == Cursor(1, 5, Phase.COMPLETED)
    assert [progress.completed for progress in world.tables.progress.values()] == [1]


async def test_events_in_reverse_order_are_stored_in_order(world):
    """Nothing is applied until the opening arrives; then everything is."""
    for each in reversed(history(STRAIGHT)):
        world.xadd(each)
        await process(world)
    assert world.verdicts() == {(1, n): "applied" for n in range(6)}
    assert world.cursor() == Cursor(1, 5, Phase.COMPLETED)
    assert world.tables.bridges == {}


async def test_a_wake_up_without_a_stream_stores_nothing(world):
    """An id without a stream makes no evaluation."""
    await process(world, "unknown")
    assert world.tables.evaluations == {}


async def test_a_duplicate_wake_up_changes_nothing(world):
    """A redelivered wake-up, or the same id twice in a batch, has no further effect."""
    world.xadd(*history(STRAIGHT))
    await process(world, EVALUATION, EVALUATION)
    before = dict(world.tables.events), dict(world.tables.scorecards)
    await process(world)
    assert (world.tables.events, world.tables.scorecards) == before
    assert [progress.total for progress in world.tables.progress.values()] == [1]


async def test_an_invalid_wake_up_is_quarantined_and_its_neighbours_processed(world):
    """A wake-up without a valid id is quarantined once, with its reason."""
    world.xadd(*history("queued"))
    woken = parse_wake_ups([(b"1-0", {b"id": b"\xff"}), (b"2-0", {b"id": EVALUATION.encode()})])
    for _ in range(2):
        await world.storage().process(*woken)
    assert world.reasons() == ["bad_wake_up"]
    assert world.cursor() == Cursor(1, 0, Phase.QUEUED)


# Gaps.


async def test_events_beyond_a_gap_wait_until_the_time_out(world):
    """Until the last millisecond of the time-out the gap is not bridged."""
    queued, claim, _, completed = history("queued provisioning running completed")
    world.xadd(queued, claim, completed)
    world.wait(GAP_TIMEOUT - MOMENT)
    await process(world)
    assert world.cursor() == Cursor(1, 1, Phase.PROVISIONING)
    assert world.tables.bridges == {}


async def test_a_gap_is_bridged_after_the_time_out_and_the_late_event_kept(world):
    """The missing sequences are recorded, the scorecard is flagged, and the missing event is late."""
    queued, claim, running, completed = history("queued provisioning running completed")
    world.xadd(queued, claim, completed)
    await process(world)
    world.wait(GAP_TIMEOUT)
    await process(world)
    assert world.cursor() == Cursor(1, 3, Phase.COMPLETED)
    assert world.tables.bridges == {(EVALUATION, 1, 3): (range(2, 3),)}
    assert world.tables.scorecards[EVALUATION].bridged
    world.xadd(running)
    for _ in range(2):
        await process(world)
    assert world.verdicts()[1, 2] == "late"
    assert [progress.bridged for progress in world.tables.progress.values()] == [1]


async def test_a_gap_that_closes_in_time_leaves_no_trace(world):
    """An event that arrives just before the time-out is applied as usual."""
    queued, claim, running, completed = history("queued provisioning running completed")
    world.xadd(queued, claim, completed)
    world.wait(GAP_TIMEOUT - MOMENT)
    await process(world)
    world.xadd(running)
    world.wait(GAP_TIMEOUT)
    await process(world)
    assert (world.tables.bridges, set(world.verdicts().values())) == ({}, {"applied"})


async def test_a_gap_without_a_closing_event_is_never_bridged(world):
    """Without a closing event the owner may still be running."""
    queued, _, running = history("queued provisioning running")
    world.xadd(queued, running)
    world.wait(timedelta(days=30))
    await process(world)
    assert world.cursor() == Cursor(1, 0, Phase.QUEUED)


async def test_degraded_ordering_bridges_at_once(world):
    """With `degraded` ordering gaps are bridged without waiting."""
    queued, *_, completed = history(STRAIGHT)
    world.xadd(queued, completed)
    await process(world, gap_policy=GAP_POLICY.degraded())
    assert world.tables.bridges == {(EVALUATION, 1, 5): (range(1, 5),)}


async def test_a_high_gap_rate_degrades_ordering(world, caplog):
    """The pass that sees it opens the breaker and logs an error, and the next pass bridges at once."""
    queued, *_, completed = history(STRAIGHT)
    world.xadd(queued, completed)
    world.wait(GAP_WARNING)
    storage = world.storage(breaker=GapBreaker(BreakerLimits(rate=0.5, minimum=1)))
    await storage.process([EVALUATION])
    assert storage.is_degraded
    assert world.tables.bridges == {}
    assert "too many gaps" in caplog.text
    await storage.process([EVALUATION])
    assert list(world.tables.bridges) == [(EVALUATION, 1, 5)]


async def test_an_old_gap_is_logged_once(world, caplog):
    """A young gap is not logged, and an old one not at every pass."""
    caplog.set_level(logging.WARNING)
    queued, _, running = history("queued provisioning running")
    world.xadd(queued, running)
    storage = world.storage()
    for waited in (timedelta(0), GAP_WARNING, GAP_WARNING):
        world.wait(waited)
        await storage.process([EVALUATION])
    assert [record.message for record in caplog.records] == ["gap: events are missing"]
    assert (storage.counts.gaps_warned, storage.counts.gaps_open) == (1, 1)


# Commit marks, expiry and the sweep.


async def append(world: World, *events) -> None:
    epoch = await world.log.epoch(EVALUATION)
    (reply,) = await world.log.append([Append(EVALUATION, records(events), epoch)])
    assert all(answer.acknowledged for answer in reply.results)


async def test_the_commit_mark_follows_every_commit(world):
    """Writers read the mark to release their tails."""
    events = history("queued provisioning running completed")
    for end in (1, 3, 4):
        await append(world, *events[:end])
        await process(world)
        assert await world.log.committed([EVALUATION]) == [(1, end - 1)]


async def test_the_stream_of_an_ended_evaluation_expires(world):
    """The stream of an evaluation that has not ended does not expire."""
    await append(world, *history("queued provisioning running"))
    await process(world)
    world.wait(timedelta(seconds=EXPIRY_SECONDS))
    assert await world.log.committed([EVALUATION]) == [(1, 2)]
    await append(world, *history("completed", first=3))
    await process(world)
    world.wait(timedelta(seconds=EXPIRY_SECONDS))
    assert await world.log.committed([EVALUATION]) == [None]


async def test_the_stream_of_a_reopened_evaluation_does_not_expire(world):
    """An operator's attempt makes the stream persistent, and the storage worker keeps it so."""
    await append(world, *history("queued failed"))
    await process(world)
    await append(world, event("queued:operator", attempt=2))
    await process(world)
    world.wait(timedelta(seconds=EXPIRY_SECONDS))
    assert await world.log.committed([EVALUATION]) == [(2, 0)]


async def test_the_sweep_finds_evaluations_whose_wake_up_was_lost(world):
    """It pages through the tables, and reads only evaluations without progress for a while."""
    storage = world.storage()
    ids = [f"e{n}" for n in range(5)]
    world.xadd(*(event("queued", evaluation_id=key) for key in ids))
    await storage.process(ids)
    for key in ids:
        world.xadd(*history("provisioning running completed", evaluation_id=key, first=1))
    assert await storage.sweep(unchanged_for=10, page=2) == 0
    world.wait(timedelta(seconds=11))
    assert await storage.sweep(unchanged_for=10, page=2) == 5
    assert {world.cursor(key).phase for key in ids} == {Phase.COMPLETED}
    assert await storage.sweep(unchanged_for=0, page=2) == 0


async def test_the_sweep_bridges_gaps_past_their_time_out(world):
    """The time-out of a gap causes no wake-up, so the sweep finds it."""
    queued, *_, completed = history(STRAIGHT)
    world.xadd(queued, completed)
    storage = world.storage()
    await storage.process([EVALUATION])
    world.wait(GAP_TIMEOUT)
    await storage.sweep(unchanged_for=15, page=100)
    assert world.cursor() == Cursor(1, 5, Phase.COMPLETED)
