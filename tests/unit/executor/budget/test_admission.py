"""Tasks are taken only if their budget has room."""

from decimal import Decimal

from taskqueue.budget.contract import (
    NOTHING,
    Amount,
    BudgetTerms,
)
from tests.builders import BATCH
from tests.unit.executor.budget.budgeted import harness_with, limited, spent
from tests.unit.executor.harness import Harness, virtually
from tests.waiting import until

CENT = Decimal("0.01")


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
