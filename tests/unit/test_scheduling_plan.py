"""The testing plan of provider-aware scheduling, item by item: what it requires, tested on Scoreline.

The first five are about the scheduler: executors that ask lanes, in virtual time. The others are about a
batch as a whole. Where Scoreline promises more than the plan asks for, the sentence names it.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from itertools import pairwise
from pathlib import Path

import pytest

from coordinator import decisions
from coordinator.attempts import AttemptFactory
from coordinator.submission import Recall, SerialPlace
from domain.batch_spec import TargetSpec
from eventlog import payloads as p
from eventlog.lifecycle import ENDED, Phase
from eventlog.timeline import Cursor
from executor.contract import RateLimited, TargetReply, TargetRequest
from executor.lanes.contract import BlockedBy, CallOutcome, LanePolicy
from executor.lanes.permits import LaneUse
from projections.folds.change import EvaluationRow
from projections.ledger.contract import EvaluationState
from taskqueue.batch_registry import BatchState
from taskqueue.queue_layout import queue_name
from taskqueue.tasks import Task
from tests.builders import BATCH, EVALUATION, START, history
from tests.storing import World
from tests.unit.executor.harness import ANSWER, SETTINGS, Harness, hang, virtually
from tests.unit.executor.lanes.test_client import MODEL, filled, harness_with
from tests.unit.executor.lanes.test_lane import Lane
from tests.unit.scoreline.submit.submission_harness import plan_of, submitted
from tests.waiting import until

OTHER = TargetSpec("fake", "other", is_metered=True)


# -- the scheduler


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
    lane.later(1).settles(CallOutcome.RATE_LIMITED, age=1.0)
    assert lane.view.concurrency == begun / 2
    for _ in range(20):
        lane.later(60).asks(1)
        lane.later(1).settles(CallOutcome.RATE_LIMITED, age=1.0)
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


# -- the flow of a batch


async def test_serial_cases_keep_their_order_and_others_need_not_wait_for_them(tmp_path: Path):
    """The plan runs serial cases first; here each follows the one before it, beside all that is free."""
    rows = [{"serial": True}, {}, {"serial": True}, {}]
    assert await places(tmp_path, rows) == [None, None, SerialPlace(1), None]


async def test_conversations_and_stored_outputs_are_serial(tmp_path: Path):
    """The plan forces the whole run to be serial; here only those who share something, each group apart."""
    rows = [
        {"conversation": "a"},
        {"store_output_as": "city"},
        {"conversation": "a"},
        {"input": "What is in {city}?"},
        {},
    ]
    assert await places(tmp_path, rows) == [
        None,
        None,
        SerialPlace(1, (Recall(1),)),
        SerialPlace(2, (Recall(2, "city"),)),
        None,
    ]


async def places(folder: Path, rows: Sequence[Mapping[str, object]]) -> list[SerialPlace | None]:
    """Return which case each case follows, and what it recalls."""
    plan = plan_of(folder, [{"input": "i", **row} for row in rows])
    return [each.serial for each in await submitted(plan)]


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


@pytest.mark.parametrize("phase", Phase)
def test_the_end_of_a_batchs_time_gives_the_unprocessed_timeouts_and_leaves_the_rest(phase: Phase):
    """Every evaluation that has not ended gets a time-out of its own; what has ended stays as it is."""
    ending = p.TimedOut(limit="batch", seconds=60.0)
    decide = decisions.end(lambda _: AttemptFactory("coordinator", START, "epoch"), ending)
    row = EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), Cursor(1, 2, phase))
    logged = {event.key: event for event in history("queued provisioning running")}
    opening = decide(EvaluationState(row, "epoch", published=True), logged)
    recorded = [each.data for each in opening.events] if opening else []
    assert recorded == ([] if phase in ENDED else [ending])


async def test_progress_and_totals_stay_consistent_whatever_the_order():
    """Ends come in any order: at each moment the parts sum up to the total, and to all in the end."""
    world = World()
    ids = [f"{BATCH}.{number:08}" for number in range(1, 7)]
    words = ["completed", "failed", "timed_out", "completed", "failed", "completed"]
    for key in ids:
        world.xadd(*history("queued provisioning running", evaluation_id=key))
    storage = world.storage()
    await storage.store(ids)
    for number in (5, 0, 3, 1, 4, 2):
        story = f"queued provisioning running {words[number]}"
        world.xadd(history(story, evaluation_id=ids[number])[-1])
        await storage.process([ids[number]])
        assert totals(world)[0] == 6
    assert totals(world) == (6, 3, 2, 1)


def totals(world: World) -> tuple[int, int, int, int]:
    """Sum up the counters of all shards: of all, and of those that completed, failed and timed out."""
    parts = list(world.tables.progress.values())
    return (
        sum(each.total for each in parts),
        sum(each.completed for each in parts),
        sum(each.failed for each in parts),
        sum(each.timed_out for each in parts),
    )
