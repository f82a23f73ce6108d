"""The reservation of one task, and its settlement."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec
from eventlog import payloads as p
from executor.budget.client import BudgetClient, Reservation
from executor.budget.task_budget import BillableCall, CallCost, TaskBudget
from executor.contract import RateLimited, Transient
from taskqueue.budget.contract import (
    NOTHING,
    Amount,
    BudgetGrant,
    BudgetRequest,
    BudgetTerms,
    CostMaximum,
)
from taskqueue.budget.memory import MemoryBudgets
from tests.builders import BATCH
from tests.unit.executor.budget.budgeted import (
    RESERVE,
    SLOTS,
    TARGET,
    CountedBudgets,
    harness_with,
    limited,
    spent,
)
from tests.unit.executor.harness import Harness, hang, raising, virtually
from tests.waiting import until

JUDGE = EvaluatorSpec("fake", "judge", is_metered=True)


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
