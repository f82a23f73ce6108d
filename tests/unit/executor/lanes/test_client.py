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
from tests.unit.executor.stage import (
    ANSWER,
    SETTINGS,
    FakeEvaluator,
    Stage,
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

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.clock)
        self.reported: list[Settlement] = []
        self.is_away = False

    async def acquire(self, requests: list[AcquireRequest]) -> list[Grant]:  # type: ignore[override]  # as it is called here
        if self.is_away:
            raise LanesUnavailable("away")
        self.reported += [settlement for each in requests for settlement in each.settlements]
        return await super().acquire(requests)

    def outcomes(self) -> Counter[CallOutcome]:
        return Counter(each.outcome for each in self.reported)


def staged(
    *targets: TargetSpec,
    evaluators: tuple[EvaluatorSpec, ...] = (),
    settings: ExecutorSettings = SETTINGS,
    **uses: LaneUse,
) -> tuple[Stage, Witness]:
    stage = Stage(BatchSpec("batch", targets, evaluators=evaluators), settings)
    lanes = Witness(stage)
    stage.lanes = cast("Lanes", lanes)
    stage.uses = uses
    return stage, lanes


async def filled(stage: Stage, batch: str, number: int, *, variant: int = 0, **entry: Any) -> None:
    await stage.register(batch, **entry)
    for each in range(number):
        opening = p.Queued(case=CASE, variant=variant)
        await stage.queue(f"{batch}-{variant}-{each}", batch_id=batch, opening=opening)


@virtually
async def test_calls_keep_to_the_rate_and_the_rest_stays_in_the_queue():
    """At one call a second, ten seconds allow about ten; no more tasks are fetched than permits."""
    stage, lanes = staged(MODEL, model=SLOW)
    await filled(stage, BATCH, 30)
    async with stage.executor() as executor:
        await asyncio.sleep(10)
        assert len(stage.target.asked) in (9, 10, 11)
        assert len(executor.slot_pool) <= 1
        [counts] = await stage.tasks.counts([queue_name(BATCH, "target-0")])
        assert counts.ready >= 19
    assert lanes.outcomes()[CallOutcome.OK] == len(stage.target.asked)
    assert (await stage.batch_registry.lanes(BATCH)) == {"target-0": ("slow",)}


@virtually
async def test_a_target_without_capacity_holds_up_no_other():
    """Neither the other target of the same batch nor another batch waits for it."""
    stage, _ = staged(MODEL, PLAIN, model=LaneUse("shut", LanePolicy(rpm=0.01)))
    await filled(stage, BATCH, 50, variant=0)
    await filled(stage, BATCH, 50, variant=1)
    await filled(stage, "other", 50, variant=1)
    async with stage.executor():
        await until(lambda: stage.is_drained(BATCH))
        await until(lambda: stage.is_drained("other"))
        assert stage.loop.time() < 5
        assert len(stage.target.asked) == 100


@virtually
async def test_two_batches_share_a_lane_by_priority():
    """Within five per cent of three to one, over a few hundred calls, while a third batch runs freely."""
    stage, _ = staged(MODEL, PLAIN, model=LaneUse("shared", LanePolicy(rpm=600)))
    await filled(stage, "a", 600, priority=3)
    await filled(stage, "b", 600, priority=1)
    await filled(stage, "free", 600, variant=1)
    async with stage.executor():
        await asyncio.sleep(40)
    asked = Counter(question.evaluation_id.split("-")[0] for question in stage.target.asked)
    assert 390 <= asked["a"] + asked["b"] <= 405
    assert asked["a"] / (asked["a"] + asked["b"]) == pytest.approx(0.75, abs=0.05)
    assert asked["free"] == 600


@pytest.mark.parametrize("idle", [1, 10])
@virtually
async def test_batches_without_tasks_take_no_permits_from_one_that_shares_their_lane(idle):
    """Their turn comes first because they have had nothing; permits that they can't use are not lost."""
    stage, _ = staged(MODEL, model=LaneUse("shared", LanePolicy(rpm=480)))
    await filled(stage, "busy", 300)
    async with stage.executor(), stage.executor():
        await asyncio.sleep(5)
        for number in range(idle):
            await filled(stage, f"idle-{number}", 0)
        before = len(stage.target.asked)
        await asyncio.sleep(30)
    assert len(stage.target.asked) - before >= 0.95 * 480 / 2


@virtually
async def test_a_task_that_only_needs_its_judge_comes_first():
    """Its answer is paid for already."""
    stage, _ = staged(MODEL, evaluators=judged_by("j"), settings=replace(SETTINGS, slots=1), model=SLOW)
    await filled(stage, BATCH, 3)
    for number in range(3):
        answered = p.Queued(case=CASE, answer=ANSWER)
        await stage.queue(f"answered-{number}", opening=answered)
    [counts] = await stage.tasks.counts([queue_name(BATCH, SCORING_PARTITION)])
    assert counts.ready == 3
    async with stage.executor():
        await until(lambda: "j" in stage.evaluators and len(stage.evaluators["j"].judged) >= 3)
        assert len(stage.target.asked) <= 1


@virtually
async def test_a_closed_judge_lane_frees_the_slot_and_the_answer_stays():
    """The attempt ends at no charge; the next one is scored without a second call of the target."""
    stage, _ = staged(PLAIN, evaluators=(JUDGE,), judge=LaneUse("judge", LanePolicy(rpm=6)))
    await filled(stage, BATCH, 1)
    async with stage.executor() as executor:
        await until(lambda: len(stage.target.asked) == 1)
        await asyncio.sleep(1)
        assert len(executor.slot_pool) == 0
        late = f"{BATCH}-0-0"
        assert (await stage.story(late)).split()[-2:] == ["responded", "retrying"]
        closing = await stage.last(late)
        assert closing.error.kind == "rate_limited"
        assert "judge" in closing.error.message
        answered = p.Queued(case=CASE, answer=ANSWER, reason=p.OpeningReason.SCORING)
        await stage.queue(late, attempt=2, opening=answered)
        await until(lambda: stage.is_drained(queue_name(BATCH, SCORING_PARTITION)))
        assert (await stage.story(late)).endswith("completed")
    assert len(stage.target.asked) == 1


@virtually
async def test_the_outcome_of_a_call_is_settled():
    """A rate-limit refusal blocks the lane for its Retry-After; limits in headers reach the lane."""
    stage, lanes = staged(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    advertised = RateLimits(requests=Headroom(limit=50))
    stage.target.how = raising(
        RateLimited("slow down", retry_after=timedelta(seconds=30), limits=advertised)
    )
    await filled(stage, BATCH, 100)
    async with stage.executor():
        await asyncio.sleep(20)
        [view] = await lanes.views(["model"])
        assert view.blocked_by is BlockedBy.RETRY_AFTER
        assert view.rpm == 50
        assert len(stage.target.asked) <= SETTINGS.slots
    assert lanes.outcomes()[CallOutcome.RATE_LIMITED] == len(stage.target.asked)


@virtually
async def test_a_dead_provider_gets_only_probes():
    """The breaker opens after a few failures, lets one probe through, and closes when a probe succeeds."""
    stage, lanes = staged(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    stage.target.how = raising(Unreachable("network", "connection refused"))
    await filled(stage, BATCH, 500)
    async with stage.executor():
        await asyncio.sleep(25)
        before = len(stage.target.asked)
        assert before <= 5 + SETTINGS.slots
        assert (await lanes.views(["model"]))[0].blocked_by is BlockedBy.BREAKER
        await asyncio.sleep(30)
        assert len(stage.target.asked) == before + 1

        async def answer(_question: TargetRequest) -> TargetReply:
            return TargetReply(ANSWER)

        stage.target.how = answer
        await until(lambda: len(stage.target.asked) > before + 10)
        assert (await lanes.views(["model"]))[0].breaker == "closed"


@virtually
async def test_permits_of_interrupted_calls_are_released():
    """An interrupted call counts as made, and its permit is not held for ever."""
    stage, lanes = staged(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    stage.settings = replace(SETTINGS, drain=timedelta(seconds=1))
    stage.target.how = hang
    await filled(stage, BATCH, 4)
    async with stage.executor():
        await until(lambda: len(stage.target.asked) == 4)
    assert lanes.outcomes()[CallOutcome.UNUSED] == 0
    assert stage.target.cancelled == 4


@virtually
async def test_an_outage_of_the_lanes_is_waited_out():
    """Without the lane store no call is made; outcomes are settled once it is back."""
    stage, lanes = staged(MODEL, model=LaneUse("model", LanePolicy(rpm=6_000)))
    await filled(stage, BATCH, 40)
    lanes.is_away = True
    async with stage.executor():
        await asyncio.sleep(5)
        assert stage.target.asked == []
        lanes.is_away = False
        await until(lambda: stage.is_drained(queue_name(BATCH, "target-0")))
    assert lanes.outcomes()[CallOutcome.OK] == 40


@virtually
async def test_an_executor_alone_keeps_to_its_share():
    """With two live executors, each may call half as often."""
    stage, _ = staged(MODEL, model=LaneUse("model", LanePolicy(rpm=120)))
    stage.settings = replace(SETTINGS, keeps_lanes_alone=True)
    await filled(stage, BATCH, 200)
    async with stage.executor(), stage.executor():
        stage.target.asked.clear()
        await asyncio.sleep(5)
        before = len(stage.target.asked)
        await asyncio.sleep(20)
        # Both share one memory here, as two processes would not: together they keep to one's share.
        assert len(stage.target.asked) - before == pytest.approx(20, abs=2)


@virtually
async def test_limits_of_a_batch_hold_on_its_lanes_until_it_is_paused():
    """Limits are declared again while the batch runs without requests, and withdrawn within two seconds."""
    limit = LaneLimit(f"{BATCH} limits", rpm=600.0)
    stage, lanes = staged(MODEL, model=LaneUse("lane", LanePolicy(), limits=(limit,)))
    await filled(stage, BATCH, 1)
    async with stage.executor():
        await asyncio.sleep(200)
        [view] = await lanes.views(["lane"])
        assert view.limits == (limit,)
        await stage.register(BATCH, state=BatchState.PAUSED)
        await asyncio.sleep(2)
        [view] = await lanes.views(["lane"])
        assert view.limits == ()


@virtually
async def test_no_connection_is_charged_only_where_the_endpoint_has_answered_before():
    """At first contact no retry is used, and there is a probe every five seconds; later it is a failure."""
    stage, lanes = staged(MODEL, model=LaneUse("lane", LanePolicy(max_concurrency=1, breaker_failures=1)))
    stage.target.how = raising(NoConnection("http://x: connection refused"))
    await filled(stage, BATCH, 3)
    async with stage.executor():
        await until(lambda: len(stage.target.asked) == 2)
        assert stage.loop.time() < 7
        stage.target.how = answer_at_once
        await until(lambda: len(stage.target.asked) == 3)
        stage.target.how = raising(NoConnection("http://x: connection refused"))
        await stage.queue("later")
        await until(lambda: len(stage.target.asked) == 4)
        await until(lambda: lanes.outcomes()[CallOutcome.UNREACHED] == 3)
    kinds = [(await stage.last(f"{BATCH}-0-{number}")) for number in range(2)]
    assert [each.error.kind for each in kinds] == ["unreachable"] * 2
    assert (await stage.last("later")).error.kind == "connection"


@virtually
async def test_limits_are_renewed_though_nothing_is_requested():
    """A batch with calls of minutes, or with tasks held elsewhere, still has its limits enforced."""
    stage, limits = Stage(), {"lane": {"a limits": LaneLimit("a limits", rpm=600.0)}}
    lanes = MemoryLanes(stage.clock)
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
    stage, _ = staged(*targets, evaluators=judges)
    stage.uses = {name: LaneUse(name) for name in ("model", "second", "judge", "other")}
    stage.spec = replace(stage.spec, max_concurrency=3)
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

    stage.target.how = answer
    stage.evaluators |= {name: FakeEvaluator(judge) for name in ("judge", "other")}
    await filled(stage, BATCH, 20)
    await filled(stage, BATCH, 20, variant=1)
    async with stage.executor(), stage.executor(), stage.executor():
        await until(lambda: len(stage.evaluators["other"].judged) == 40, 60)
    assert most == 3
    assert len(stage.evaluators["other"].judged) == 40
