"""Executors that acquire lanes, in virtual time: what starts, what waits and what is cancelled."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest

from domain.batch_spec import TargetSpec
from executor.contract import RateLimited, TargetReply, TargetRequest
from executor.lanes.contract import BlockedBy, CallOutcome, LanePolicy
from executor.lanes.permits import LaneUse
from taskqueue.batch_registry import BatchState
from taskqueue.queue_layout import queue_name
from taskqueue.tasks import Task
from tests.builders import BATCH
from tests.unit.executor.harness import ANSWER, SETTINGS, Harness, hang, virtually
from tests.unit.executor.lanes.lane_model import Lane
from tests.unit.executor.lanes.test_client import MODEL, filled, harness_with
from tests.waiting import until

OTHER = TargetSpec("fake", "other", is_metered=True)


@virtually
async def test_tasks_start_per_lane_without_cross_lane_blocking():
    """Of two providers in one batch, one that takes a call an hour holds up none of the other's."""
    harness, _ = harness_with(
        *(MODEL, OTHER),
        model=LaneUse("shut", LanePolicy(rpm=1 / 60)),
        other=LaneUse("open", LanePolicy(rpm=6_000)),
    )
    await filled(harness, BATCH, 30, variant=0)
    await filled(harness, BATCH, 30, variant=1)
    async with harness.executor():
        await until(lambda: harness.is_drained(queue_name(BATCH, "target-1")))
        assert harness.loop.time() < 5
    assert len(harness.target.asked) == 30


@virtually
async def test_idle_batches_use_no_permit_of_the_lane_they_share():
    """Their queues are counted, not fetched from, and none of their tasks can be stalled."""
    harness, lanes = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=60)))
    for number in range(20):
        await filled(harness, f"idle-{number}", 0)
    async with harness.executor():
        await asyncio.sleep(60)  # every queue was found empty once
        lanes.reported.clear()
        await asyncio.sleep(60)
        assert lanes.reported == []
        await filled(harness, BATCH, 100)
        await asyncio.sleep(60)
        assert 59 <= len(harness.target.asked) <= 61


@pytest.mark.parametrize(
    "policy",
    [LanePolicy(rpm=30), LanePolicy(tpm=240), LanePolicy(gap=2.0)],
    ids=["requests a minute", "tokens a minute", "least gap"],
)
@virtually
async def test_a_lane_respects_rpm_and_tpm_spacing_and_its_least_gap(policy):
    """Thirty calls a minute, thirty calls' worth of tokens, two seconds between: each starts two apart."""
    harness, _ = harness_with(MODEL, model=LaneUse("model", policy, 8.0))
    starts: list[float] = []

    async def answer(_question: TargetRequest) -> TargetReply:
        starts.append(harness.loop.time())
        return TargetReply(ANSWER)

    harness.target.how = answer
    await filled(harness, BATCH, 40)
    async with harness.executor():
        await asyncio.sleep(30)
    assert len(starts) in (14, 15, 16)
    assert all(later - earlier > 1.9 for earlier, later in pairwise(starts))


@virtually
async def test_retry_after_blocks_starts_and_requeues_correctly():
    """One refusal closes the lane for as long as it asks; what was refused comes back then, uncharged."""
    harness, lanes = harness_with(
        MODEL, settings=replace(SETTINGS, slots=1), model=LaneUse("model", LanePolicy(rpm=6_000))
    )
    rejections: list[RateLimited] = [RateLimited("slow down", retry_after=timedelta(seconds=30))]

    async def ask(_question: TargetRequest) -> TargetReply:
        if rejections:
            raise rejections.pop()
        return TargetReply(ANSWER)

    harness.target.how = ask
    await filled(harness, BATCH, 10)
    async with harness.executor():
        await until(lambda: lanes.outcomes()[CallOutcome.RATE_LIMITED])
        refused_at = harness.now()
        await asyncio.sleep(25)
        assert len(harness.target.asked) == 1
        assert (await lanes.views(["model"]))[0].blocked_by is BlockedBy.RETRY_AFTER
        await until(lambda: harness.is_drained(queue_name(BATCH, "target-0")), timeout=60)
        refused = await harness.last(harness.target.asked[0].evaluation_id)
    assert refused.error.kind == "rate_limited"
    assert refused.retry_at - refused_at > timedelta(seconds=29)
    assert len(harness.target.asked) == 10


def test_adaptive_concurrency_decreases_on_429_and_increases_on_success():
    """Halved once a burst of refusals, down to one; then up again as calls go well."""
    lane = Lane()
    lane.asks(8)
    begun = lane.view.concurrency
    lane.later(1).settles(CallOutcome.RATE_LIMITED, age=1.0, retry_after=1.0)
    assert lane.view.concurrency == begun / 2
    for _ in range(20):
        lane.later(60).asks(1)
        lane.later(1).settles(CallOutcome.RATE_LIMITED, age=1.0, retry_after=1.0)
    assert lane.view.concurrency == 1
    for _ in range(20):
        lane.later(60).asks(1)
        lane.later(1).settles(CallOutcome.OK, age=1.0)
    assert lane.view.concurrency > 2


@virtually
async def test_an_abort_stops_new_starts_and_cancels_in_flight_tasks():
    """A stopped batch: calls are cancelled within a look at the batch registry, and none begins."""
    harness, lanes = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    harness.target.how = hang
    await filled(harness, BATCH, 20)
    async with harness.executor() as executor:
        await until(lambda: len(harness.target.asked) == SETTINGS.slots)
        await harness.register(state=BatchState.STOPPED)
        await until(lambda: harness.target.cancelled == SETTINGS.slots)
        await asyncio.sleep(30)
        assert executor.slot_pool.free == SETTINGS.slots
    assert len(harness.target.asked) == SETTINGS.slots
    assert lanes.outcomes()[CallOutcome.ABANDONED] == SETTINGS.slots


@virtually
async def test_a_resumed_batch_skips_what_has_completed():
    """Should the task of a completed evaluation come back, its target is not called; the others are."""
    harness = Harness()
    await harness.register()
    await harness.queue("done")
    async with harness.executor():
        await until(harness.is_drained)
    await harness.tasks.enqueue(BATCH, Task("done", 1))
    await harness.queue("open")
    async with harness.executor():
        await until(harness.is_drained)
    assert [question.evaluation_id for question in harness.target.asked] == ["done", "open"]
    assert (await harness.story("done")).count("completed") == 1
