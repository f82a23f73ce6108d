"""An executor that shuts down, and tasks that end without a call or only after a long one."""

import asyncio
from dataclasses import replace

import pytest

from domain.batch_spec import BatchSpec
from eventlog import payloads as p
from executor.contract import Permanent, TargetReply, TargetRequest
from executor.lanes.contract import CallOutcome, LanePolicy
from executor.lanes.permits import LaneUse
from taskqueue.queue_layout import SCORING_PARTITION, queue_name
from tests.builders import BATCH, CASE
from tests.unit.executor.harness import ANSWER as REPLY
from tests.unit.executor.harness import SETTINGS, TARGET, Harness, judged_by, raising, virtually
from tests.unit.executor.lanes.test_client import MODEL, harness_with
from tests.waiting import until

LONG = BatchSpec("batch", (TARGET,), timeout=10_000.0)


@virtually
async def test_a_shutdown_hands_back_what_cannot_end_in_time():
    """On SIGTERM, tasks that can end in time end, the rest is requeued at no charge, none is started."""
    harness = Harness(LONG, replace(SETTINGS, slots=2))

    async def ask(question: TargetRequest) -> TargetReply:
        await asyncio.sleep(5 if question.evaluation_id == "quick" else 5_000)
        return TargetReply(REPLY)

    harness.target.how = ask
    await harness.register()
    for name in ("quick", "slow", "unbegun"):
        await harness.queue(name)
    async with harness.executor():
        await until(lambda: len(harness.target.asked) == 2)
    assert isinstance(await harness.last("quick"), p.Completed)
    handed_back = await harness.last("slow")
    assert (handed_back.error.kind, handed_back.retry_at <= harness.now()) == ("shutdown", True)
    assert await harness.story("unbegun") == "queued"


@virtually
async def test_a_cached_answer_needs_no_permit():
    """A cached answer needs no lane: it is scored at once although the provider is blocked for hours."""
    harness, lanes = harness_with(
        MODEL, evaluators=judged_by("judge"), model=LaneUse("shut", LanePolicy(rpm=0.01))
    )
    await harness.register()
    for number in range(20):
        await harness.queue(f"e-{number}", opening=p.Queued(case=CASE, answer=replace(REPLY, cached=True)))
    async with harness.executor():
        await until(lambda: harness.is_drained(queue_name(BATCH, SCORING_PARTITION)))
        assert harness.loop.time() < 10
    assert harness.target.asked == []
    assert lanes.outcomes()[CallOutcome.OK] == 0
    assert (await harness.last("e-0")).verdict == "passed"


@virtually
async def test_invalid_input_fails_before_a_call():
    """Invalid input fails before a call, and its permit is returned unused."""
    harness, lanes = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    harness.spec = replace(harness.spec, prompts=("{nowhere}",))
    await harness.register()
    for number in range(3):
        await harness.queue(f"e-{number}")
    async with harness.executor():
        await until(lambda: harness.is_drained(queue_name(BATCH, "target-0")))
    assert harness.target.asked == []
    assert (await harness.last("e-0")).error.kind == "invalid"
    assert set(lanes.outcomes()) == {CallOutcome.UNUSED}


@virtually
async def test_a_missing_answer_is_not_scored():
    """An evaluation without an answer is not scored."""
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=judged_by("judge")))
    harness.target.how = raising(Permanent("refused", "no such model"))
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await until(harness.is_drained)
    assert await harness.story("e-1") == "queued provisioning running failed"
    assert harness.evaluators["judge"].judged == []


@pytest.mark.parametrize(("seconds", "end"), [(1_000.0, p.Completed), (300.0, p.TimedOut)])
@virtually
async def test_a_slow_call_within_its_time_out_keeps_its_task(seconds, end):
    """A call of ten minutes within its time-out keeps its task; beyond it, the call is cancelled."""
    harness = Harness(replace(LONG, timeout=seconds))

    async def take_long(_question: TargetRequest) -> TargetReply:
        await asyncio.sleep(600)
        return TargetReply(REPLY)

    harness.target.how = take_long
    await harness.register()
    await harness.queue("e-1", opening=p.Queued(case=CASE, retries=0))
    async with harness.executor(), harness.executor():
        await asyncio.sleep(1_200)
        assert await harness.is_drained()
    assert isinstance(await harness.last("e-1"), end)
    assert len(harness.target.asked) == 1
