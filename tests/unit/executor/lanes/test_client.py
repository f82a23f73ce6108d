"""The lane client: permits before a task is fetched, settlements afterwards, and no other queue waits."""

import asyncio
from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import Any, cast

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from eventlog import payloads as p
from executor.contract import (
    NoConnection,
    RateLimited,
    ScoringRequest,
    TargetReply,
    TargetRequest,
    Unreachable,
)
from executor.lanes.client import LaneClient
from executor.lanes.contract import (
    AcquireRequest,
    BlockedBy,
    CallOutcome,
    Grant,
    LaneLimit,
    LanePolicy,
    Lanes,
    LanesUnavailable,
    Settlement,
)
from executor.lanes.memory import MemoryLanes
from executor.lanes.permits import LaneUse
from executor.settings import ExecutorSettings
from providers.limits import Headroom, RateLimits
from taskqueue.batch_registry import BatchState
from taskqueue.queue_layout import SCORING_PARTITION, queue_name
from tests.builders import BATCH, CASE
from tests.unit.executor.harness import (
    ANSWER,
    SETTINGS,
    FakeEvaluator,
    Harness,
    answer_at_once,
    hang,
    judged_by,
    raising,
    virtually,
)
from tests.waiting import until

MODEL = TargetSpec("fake", "model", is_metered=True)
PLAIN = TargetSpec("fake", "plain")
JUDGE = EvaluatorSpec("fake", "judge", is_metered=True)
SLOW = LaneUse("slow", LanePolicy(rpm=60))


class Witness(MemoryLanes):
    """Lanes that record every settlement they receive."""

    def __init__(self, harness: Harness) -> None:
        super().__init__(harness.clock)
        self.reported: list[Settlement] = []
        self.is_away = False

    async def acquire(self, requests: list[AcquireRequest]) -> list[Grant]:  # type: ignore[override]  # as it is called here
        if self.is_away:
            raise LanesUnavailable("away")
        self.reported += [settlement for each in requests for settlement in each.settlements]
        return await super().acquire(requests)

    def outcomes(self) -> Counter[CallOutcome]:
        return Counter(each.outcome for each in self.reported)


def harness_with(
    *targets: TargetSpec,
    evaluators: tuple[EvaluatorSpec, ...] = (),
    settings: ExecutorSettings = SETTINGS,
    **uses: LaneUse,
) -> tuple[Harness, Witness]:
    harness = Harness(BatchSpec("batch", targets, evaluators=evaluators), settings)
    lanes = Witness(harness)
    harness.lanes = cast("Lanes", lanes)
    harness.uses = uses
    return harness, lanes


async def filled(harness: Harness, batch: str, number: int, *, variant: int = 0, **entry: Any) -> None:
    await harness.register(batch, **entry)
    for each in range(number):
        opening = p.Queued(case=CASE, variant=variant)
        await harness.queue(f"{batch}-{variant}-{each}", batch_id=batch, opening=opening)


@virtually
async def test_calls_keep_to_the_rate_and_the_rest_stays_in_the_queue():
    """At one call a second, ten seconds allow about ten; no more tasks are fetched than permits."""
    harness, lanes = harness_with(MODEL, model=SLOW)
    await filled(harness, BATCH, 30)
    async with harness.executor() as executor:
        await asyncio.sleep(10)
        assert len(harness.target.asked) in (9, 10, 11)
        assert len(executor.slot_pool) <= 1
        [counts] = await harness.tasks.counts([queue_name(BATCH, "target-0")])
        assert counts.ready >= 19
    assert lanes.outcomes()[CallOutcome.OK] == len(harness.target.asked)
    assert (await harness.batch_registry.lanes(BATCH)) == {"target-0": ("slow",)}


@virtually
async def test_a_target_without_capacity_holds_up_no_other():
    """Neither the other target of the same batch nor another batch waits for it."""
    harness, _ = harness_with(MODEL, PLAIN, model=LaneUse("shut", LanePolicy(rpm=0.01)))
    await filled(harness, BATCH, 50, variant=0)
    await filled(harness, BATCH, 50, variant=1)
    await filled(harness, "other", 50, variant=1)
    async with harness.executor():
        await until(lambda: harness.is_drained(BATCH))
        await until(lambda: harness.is_drained("other"))
        assert harness.loop.time() < 5
        assert len(harness.target.asked) == 100


@virtually
async def test_two_batches_share_a_lane_by_priority():
    """Within five per cent of three to one, over a few hundred calls, while a third batch runs freely."""
    harness, _ = harness_with(MODEL, PLAIN, model=LaneUse("shared", LanePolicy(rpm=600)))
    await filled(harness, "a", 600, priority=3)
    await filled(harness, "b", 600, priority=1)
    await filled(harness, "free", 600, variant=1)
    async with harness.executor():
        await asyncio.sleep(40)
    asked = Counter(question.evaluation_id.split("-")[0] for question in harness.target.asked)
    assert 390 <= asked["a"] + asked["b"] <= 405
    assert asked["a"] / (asked["a"] + asked["b"]) == pytest.approx(0.75, abs=0.05)
    assert asked["free"] == 600


@pytest.mark.parametrize("idle", [1, 10])
@virtually
async def test_batches_without_tasks_take_no_permits_from_one_that_shares_their_lane(idle):
    """Their turn comes first because they have had nothing; permits that they can't use are not lost."""
    harness, _ = harness_with(MODEL, model=LaneUse("shared", LanePolicy(rpm=480)))
    await filled(harness, "busy", 300)
    async with harness.executor(), harness.executor():
        await asyncio.sleep(5)
        for number in range(idle):
            await filled(harness, f"idle-{number}", 0)
        before = len(harness.target.asked)
        await asyncio.sleep(30)
    assert len(harness.target.asked) - before >= 0.95 * 480 / 2


@virtually
async def test_a_task_that_only_needs_its_judge_comes_first():
    """Its answer is paid for already."""
    harness, _ = harness_with(
        MODEL, evaluators=judged_by("j"), settings=replace(SETTINGS, slots=1), model=SLOW
    )
    await filled(harness, BATCH, 3)
    for number in range(3):
        answered = p.Queued(case=CASE, answer=ANSWER)
        await harness.queue(f"answered-{number}", opening=answered)
    [counts] = await harness.tasks.counts([queue_name(BATCH, SCORING_PARTITION)])
    assert counts.ready == 3
    async with harness.executor():
        await until(lambda: "j" in harness.evaluators and len(harness.evaluators["j"].judged) >= 3)
        assert len(harness.target.asked) <= 1


@virtually
async def test_a_closed_judge_lane_frees_the_slot_and_the_answer_stays():
    """The attempt ends at no charge; the next one is scored without a second call of the target."""
    harness, _ = harness_with(PLAIN, evaluators=(JUDGE,), judge=LaneUse("judge", LanePolicy(rpm=6)))
    await filled(harness, BATCH, 1)
    async with harness.executor() as executor:
        await until(lambda: len(harness.target.asked) == 1)
        await asyncio.sleep(1)
        assert len(executor.slot_pool) == 0
        late = f"{BATCH}-0-0"
        assert (await harness.story(late)).split()[-2:] == ["responded", "retrying"]
        closing = await harness.last(late)
        assert closing.error.kind == "rate_limited"
        assert "judge" in closing.error.message
        answered = p.Queued(case=CASE, answer=ANSWER, reason=p.OpeningReason.SCORING)
        await harness.queue(late, attempt=2, opening=answered)
        await until(lambda: harness.is_drained(queue_name(BATCH, SCORING_PARTITION)))
        assert (await harness.story(late)).endswith("completed")
    assert len(harness.target.asked) == 1


@virtually
async def test_the_outcome_of_a_call_is_settled():
    """A rate-limit refusal blocks the lane for its Retry-After; limits in headers reach the lane."""
    harness, lanes = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    advertised = RateLimits(requests=Headroom(limit=50))
    harness.target.how = raising(
        RateLimited("slow down", retry_after=timedelta(seconds=30), limits=advertised)
    )
    await filled(harness, BATCH, 100)
    async with harness.executor():
        await asyncio.sleep(20)
        [view] = await lanes.views(["model"])
        assert view.blocked_by is BlockedBy.RETRY_AFTER
        assert view.rpm == 50
        assert len(harness.target.asked) <= SETTINGS.slots
    assert lanes.outcomes()[CallOutcome.RATE_LIMITED] == len(harness.target.asked)


@virtually
async def test_a_dead_provider_gets_only_probes():
    """The breaker opens after a few failures, lets one probe through, and closes when a probe succeeds."""
    harness, lanes = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    harness.target.how = raising(Unreachable("network", "connection refused"))
    await filled(harness, BATCH, 500)
    async with harness.executor():
        await asyncio.sleep(25)
        before = len(harness.target.asked)
        assert before <= 5 + SETTINGS.slots
        assert (await lanes.views(["model"]))[0].blocked_by is BlockedBy.BREAKER
        await asyncio.sleep(30)
        assert len(harness.target.asked) == before + 1

        async def answer(_question: TargetRequest) -> TargetReply:
            return TargetReply(ANSWER)

        harness.target.how = answer
        await until(lambda: len(harness.target.asked) > before + 10)
        assert (await lanes.views(["model"]))[0].breaker == "closed"


@virtually
async def test_permits_of_interrupted_calls_are_released():
    """An interrupted call counts as made, and its permit is not held for ever."""
    harness, lanes = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    harness.settings = replace(SETTINGS, drain=timedelta(seconds=1))
    harness.target.how = hang
    await filled(harness, BATCH, 4)
    async with harness.executor():
        await until(lambda: len(harness.target.asked) == 4)
    assert lanes.outcomes()[CallOutcome.UNUSED] == 0
    assert harness.target.cancelled == 4


@virtually
async def test_an_outage_of_the_lanes_is_waited_out():
    """Without the lane store no call is made; outcomes are settled once it is back."""
    harness, lanes = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    await filled(harness, BATCH, 40)
    lanes.is_away = True
    async with harness.executor():
        await asyncio.sleep(5)
        assert harness.target.asked == []
        lanes.is_away = False
        await until(lambda: harness.is_drained(queue_name(BATCH, "target-0")))
    assert lanes.outcomes()[CallOutcome.OK] == 40


@virtually
async def test_an_executor_alone_keeps_to_its_share():
    """With two live executors, each may call half as often."""
    harness, _ = harness_with(MODEL, model=LaneUse("model", LanePolicy(rpm=120)))
    harness.settings = replace(SETTINGS, keeps_lanes_alone=True)
    await filled(harness, BATCH, 200)
    async with harness.executor(), harness.executor():
        harness.target.asked.clear()
        await asyncio.sleep(5)
        before = len(harness.target.asked)
        await asyncio.sleep(20)
        # Both share one memory here, as two processes would not: together they keep to one's share.
        assert len(harness.target.asked) - before == pytest.approx(20, abs=2)


@virtually
async def test_limits_of_a_batch_hold_on_its_lanes_until_it_is_paused():
    """Limits are declared again while the batch runs without requests, and withdrawn within two seconds."""
    limit = LaneLimit(f"{BATCH} limits", rpm=600.0)
    harness, lanes = harness_with(MODEL, model=LaneUse("lane", LanePolicy(), limits=(limit,)))
    await filled(harness, BATCH, 1)
    async with harness.executor():
        await asyncio.sleep(200)
        [view] = await lanes.views(["lane"])
        assert view.limits == (limit,)
        await harness.register(BATCH, state=BatchState.PAUSED)
        await asyncio.sleep(2)
        [view] = await lanes.views(["lane"])
        assert view.limits == ()


@virtually
async def test_no_connection_is_charged_only_where_the_endpoint_has_answered_before():
    """At first contact no retry is used, and there is a probe every five seconds; later it is a failure."""
    harness, lanes = harness_with(
        MODEL, model=LaneUse("lane", LanePolicy(max_concurrency=1, breaker_failures=1))
    )
    harness.target.how = raising(NoConnection("http://x: connection refused"))
    await filled(harness, BATCH, 3)
    async with harness.executor():
        await until(lambda: len(harness.target.asked) == 2)
        assert harness.loop.time() < 7
        harness.target.how = answer_at_once
        await until(lambda: len(harness.target.asked) == 3)
        harness.target.how = raising(NoConnection("http://x: connection refused"))
        await harness.queue("later")
        await until(lambda: len(harness.target.asked) == 4)
        await until(lambda: lanes.outcomes()[CallOutcome.UNREACHED] == 3)
    kinds = [(await harness.last(f"{BATCH}-0-{number}")) for number in range(2)]
    assert [each.error.kind for each in kinds] == ["unreachable"] * 2
    assert (await harness.last("later")).error.kind == "connection"


@virtually
async def test_limits_are_renewed_though_nothing_is_requested():
    """A batch with calls of minutes, or with tasks held elsewhere, still has its limits enforced."""
    harness, limits = Harness(), {"lane": {"a limits": LaneLimit("a limits", rpm=600.0)}}
    lanes = MemoryLanes(harness.clock)
    book = LaneClient(cast("Lanes", lanes), _no_uses, executor="e", limits=lambda: limits)
    running = asyncio.create_task(book.run())
    await asyncio.sleep(300)
    [view] = await lanes.views(["lane"])
    assert view.limits == tuple(limits["lane"].values())
    running.cancel()


async def _no_uses(_line: str) -> tuple[LaneUse, ...]:
    return ()


@virtually
async def test_calls_of_a_batch_in_flight_are_limited_overall():
    """Two targets and two judges with a lane each: never more than three calls, and all work gets done."""
    targets = (MODEL, replace(MODEL, label="second"))
    judges = (JUDGE, replace(JUDGE, name="other"))
    harness, _ = harness_with(*targets, evaluators=judges)
    harness.uses = {name: LaneUse(name) for name in ("model", "second", "judge", "other")}
    harness.spec = replace(harness.spec, max_concurrency=3)
    flight, most = 0, 0

    async def called(_anything: object) -> None:
        nonlocal flight, most
        flight, most = flight + 1, max(most, flight + 1)
        await asyncio.sleep(0.5)
        flight -= 1

    async def answer(question: TargetRequest) -> TargetReply:
        await called(question)
        return TargetReply(ANSWER)

    async def judge(judged: ScoringRequest) -> p.Score:
        await called(judged)
        return p.Score(evaluator="any", score=1.0, passed=True)

    harness.target.how = answer
    harness.evaluators |= {name: FakeEvaluator(judge) for name in ("judge", "other")}
    await filled(harness, BATCH, 20)
    await filled(harness, BATCH, 20, variant=1)
    async with harness.executor(), harness.executor(), harness.executor():
        await until(lambda: len(harness.evaluators["other"].judged) == 40, 60)
    assert most == 3
    assert len(harness.evaluators["other"].judged) == 40
