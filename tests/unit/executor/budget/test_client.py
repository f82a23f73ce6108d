"""Executors and budgets: reserved before a task is taken, settled after each call."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from eventlog import payloads as p
from executor.budget.client import BudgetClient, Reservation, ReservationRequest
from executor.budget.task_budget import BillableCall, CallCost, TaskBudget
from executor.contract import RateLimited, TargetReply, Transient
from executor.settings import ExecutorSettings
from taskqueue.budget.contract import (
    NOTHING,
    Amount,
    BudgetGrant,
    BudgetRequest,
    BudgetTerms,
    CostMaximum,
    NewAccount,
)
from taskqueue.budget.estimates import Calibration, RequestSize, estimate, margin
from taskqueue.budget.memory import MemoryBudgets
from tests.builders import BATCH
from tests.unit.executor.harness import SETTINGS, Harness, hang, raising, virtually
from tests.waiting import until

TARGET = TargetSpec("fake", "model")
JUDGE = EvaluatorSpec("fake", "judge", is_metered=True)
CENT = Decimal("0.01")
SLOTS = replace(SETTINGS, slots=8)


class CountedBudgets(MemoryBudgets):
    """Accounts that count their requests."""

    requests = 0

    async def request(self, requests: Sequence[BudgetRequest]) -> list[BudgetGrant]:
        self.requests += len(requests)
        return await super().request(requests)


def harness_with(
    *evaluators: EvaluatorSpec, settings: ExecutorSettings = SLOTS
) -> tuple[Harness, CountedBudgets]:
    harness = Harness(BatchSpec("batch", (TARGET,), evaluators=evaluators), settings)
    harness.budgets = budgets = CountedBudgets(harness.clock)
    harness.target.how = costing(0.01)
    return harness, budgets


def costing(usd: float):
    async def answer(_question: object) -> TargetReply:
        return TargetReply(p.Answer(output="4", usage=p.TokenUsage(3, 4), cost_usd=usd))

    return answer


async def limited(budgets: MemoryBudgets, usd: str) -> None:
    terms = BudgetTerms(BATCH, int(Decimal(usd) * 10**9), None)
    await budgets.publish(terms, create=NewAccount())


async def spent(budgets: MemoryBudgets) -> Amount:
    seen = await budgets.publish(BudgetTerms(BATCH, 10**12, None))
    assert seen
    return seen.spent


async def ended(harness: Harness, many: int) -> int:
    stories = [await harness.story(f"e{n}") for n in range(many)]
    return sum("completed" in each for each in stories)


@virtually
async def test_a_batch_without_a_budget_makes_no_request() -> None:
    """Budgets of other batches cost it nothing."""
    harness, budgets = harness_with()
    await harness.register()
    await harness.queue("e0")
    async with harness.executor():
        await until(harness.is_drained)
    assert budgets.requests == 0


@virtually
async def test_without_an_account_nothing_is_called_and_nothing_is_lost() -> None:
    """A lost account never widens a budget: tasks stay in the queue until it is published again."""
    harness, budgets = harness_with()
    await harness.register(has_budget=True)
    await harness.queue("e0")
    async with harness.executor():
        await until(lambda: budgets.requests > 20)
        assert (harness.target.asked, await harness.story("e0")) == ([], "queued")
        await limited(budgets, "1")
        await until(harness.is_drained)
    assert (len(harness.target.asked), await spent(budgets)) == (1, Amount(10_000_000, 7))


@virtually
async def test_a_budget_is_used_up_and_not_exceeded_whatever_the_slots() -> None:
    """The first call probes the cost; ten cents are ten calls of a cent, and the rest stays queued."""
    harness, budgets = harness_with()
    await limited(budgets, "0.105")
    await harness.register(has_budget=True)
    for n in range(30):
        await harness.queue(f"e{n}")
    async with harness.executor():
        await until(lambda: len(harness.target.asked) >= 10)
        count = budgets.requests
        await until(lambda: budgets.requests > count + 20)
        assert len(harness.target.asked) == 10
        assert await ended(harness, 30) == 10
        seen = await budgets.publish(BudgetTerms(BATCH, 105_000_000, None))
    assert seen
    assert (seen.spent.usd, seen.held, seen.needed.usd) == (CENT * 10, NOTHING, CENT)


@virtually
async def test_a_judge_is_reserved_for_and_settled() -> None:
    """Target and judge are reserved together, so that a started task can finish; both are spend."""
    harness, budgets = harness_with(JUDGE)
    harness.make_evaluator(JUDGE, None).how = judging(0.02)  # type: ignore[arg-type, attr-defined]
    await limited(budgets, "0.07")
    await harness.register(has_budget=True)
    for n in range(5):
        await harness.queue(f"e{n}")
    async with harness.executor():
        await until(lambda: len(harness.target.asked) >= 2)
        count = budgets.requests
        await until(lambda: budgets.requests > count + 30)
        assert len(harness.target.asked) == 2
    assert (await spent(budgets)).usd == Decimal("0.06")


def judging(usd: float):
    async def judge(_judged: object) -> p.Score:
        return p.Score(evaluator="judge", score=1.0, usage=p.TokenUsage(2, 2), cost_usd=usd)

    return judge


@pytest.mark.parametrize(
    ("behave", "counted"),
    [
        (raising(Transient("timeout", "took too long")), "0.01"),
        (raising(Transient("invalid_response", "no JSON")), "0.01"),
        (raising(Transient("server_error", "500")), "0"),
        (raising(RateLimited("429")), "0"),
        (hang, "0.01"),
    ],
    ids=["time-out", "garbage", "server error", "refused", "no answer"],
)
def test_a_call_of_unknown_cost_counts_at_what_it_likely_cost(behave, counted) -> None:
    """This holds where the provider may have charged for it; a refusal costs and reserves nothing."""

    @virtually
    async def proof() -> None:
        harness = Harness(BatchSpec("batch", (TARGET,), timeout=5.0, retries=0), SLOTS)
        harness.budgets = budgets = MemoryBudgets(harness.clock)
        await limited(budgets, "1")
        known = BudgetRequest(BATCH, "another", maxima={"target:0": CostMaximum(1, 10_000_000, 7)})
        await budgets.request([known])
        harness.target.how = behave
        await harness.register(has_budget=True)
        await harness.queue("e0")
        async with harness.executor():
            await until(harness.is_drained)
        seen = await budgets.publish(BudgetTerms(BATCH, 10**9, None))
        assert seen
        expected = Decimal(counted)
        assert (seen.spent.usd, seen.unrecorded.usd, seen.held) == (expected, expected, NOTHING)

    proof()


# -- estimates


HAIKU = RequestSize(characters=400, max_output=1_000, input_price=1.0, output_price=5.0)


def test_an_unobserved_call_is_bounded_by_its_prompt_and_max_tokens() -> None:
    """At half a token a character; where nothing bounds the answer, nothing fits beside it."""
    found = estimate(CostMaximum(), HAIKU, Calibration())
    assert (found.unit, found.least) == (Amount(5_232_000, 1_232), NOTHING)
    assert found.likely == Amount(1_482_000, 482)
    assert estimate(CostMaximum(), replace(HAIKU, max_output=None), Calibration()).unit.cost == 10**15
    assert not estimate(CostMaximum(), None, Calibration(), is_free=True).unit


def test_observations_tighten_an_estimate_and_long_prompts_raise_it() -> None:
    """The margin shrinks with the number of calls; the bound is never exceeded."""
    observed = CostMaximum(100, 500_000, 150)
    found = estimate(observed, HAIKU, Calibration(0.25, 80))
    assert (margin(1), margin(4), margin(100)) == (3.0, 2.0, 1.2)
    assert (found.unit, found.least) == (Amount(612_000, 228), Amount(500_000, 150))
    long = estimate(observed, replace(HAIKU, characters=40_000), Calibration(0.25, 80))
    assert long.unit == Amount(10_512_000, 10_128)


# -- releases


RESERVE = ReservationRequest(1, Amount(10), Amount(10), likely=Amount(10))


@virtually
async def test_a_batch_is_not_forgotten_before_its_release_is_declared() -> None:
    """Else its account would keep the reservation, and count it as a dead executor's call."""
    budgets = MemoryBudgets(lambda: 0.0)
    await limited(budgets, "1")
    client = BudgetClient(budgets, holder="a")
    await client.reserve({BATCH: RESERVE})
    client.release(BATCH, Reservation(Amount(10), Amount(10)))
    client.forget_all_but(())
    await client.declare()
    client.forget_all_but(())
    seen = await budgets.publish(BudgetTerms(BATCH, 10**9, None, dead=["a"]))
    assert seen
    assert (seen.held, seen.spent) == (NOTHING, NOTHING)


@virtually
async def test_an_executor_that_ends_in_good_order_leaves_no_reservation() -> None:
    """What was reserved for a task that never began is no spend once the executor has deregistered."""
    harness, budgets = harness_with()
    await limited(budgets, "1")
    await harness.register(has_budget=True)
    async with harness.executor() as executor:
        assert executor._budget
        await executor._budget.reserve({BATCH: RESERVE})
    seen = await budgets.publish(BudgetTerms(BATCH, 10**9, None, dead=[executor.instance_id]))
    assert seen
    assert (seen.held, seen.spent) == (NOTHING, NOTHING)


class DistantBudgets(CountedBudgets):
    """Accounts behind a network."""

    async def request(self, requests: Sequence[BudgetRequest]) -> list[BudgetGrant]:
        await asyncio.sleep(0.001)
        return await super().request(requests)


@virtually
async def test_a_settlement_is_declared_before_its_event_can_be_appended() -> None:
    """Else Postgres may have the event first, and the account counts the call twice."""
    budgets = DistantBudgets(lambda: 0.0)
    await limited(budgets, "1")
    client = BudgetClient(budgets, holder="a")
    grant = (await client.reserve({BATCH: replace(RESERVE, wanted=8)}))[BATCH]
    reserved = Reservation(grant.reserved, Amount(10))
    before = budgets.requests
    calls = [paid_call(client, reserved) for _ in range(8)]
    await asyncio.gather(*calls)
    assert await spent(budgets) == Amount(8 * 10**7, 8 * 7)
    assert budgets.requests - before <= 2, "calls that end together share a round trip"


async def paid_call(client: BudgetClient, reserved: Reservation) -> None:
    """Make one paid call; nothing declares in the background."""
    spending = TaskBudget(client, batch_id=BATCH, reserved=reserved)

    async def call() -> CallCost:
        await asyncio.sleep(0)
        return CallCost(p.TokenUsage(3, 4), 0.01)

    await spending.pay_for(lambda: BillableCall("target:0", is_free=True), call, lambda paid: paid)
