"""Executors and budgets: reserved before a task is taken, settled after each call."""

from executor.budget.client import BudgetClient, Reservation
from taskqueue.budget.contract import (
    NOTHING,
    Amount,
    BudgetTerms,
)
from taskqueue.budget.memory import MemoryBudgets
from tests.builders import BATCH
from tests.unit.executor.budget.budgeted import RESERVE, harness_with, limited
from tests.unit.executor.harness import virtually


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
