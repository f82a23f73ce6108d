"""Batches with a budget."""

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from eventlog import payloads as p
from executor.budget.client import ReservationRequest
from executor.contract import TargetReply
from executor.settings import ExecutorSettings
from taskqueue.budget.contract import (
    Amount,
    BudgetGrant,
    BudgetRequest,
    BudgetTerms,
    NewAccount,
)
from taskqueue.budget.memory import MemoryBudgets
from tests.builders import BATCH
from tests.unit.executor.harness import SETTINGS, Harness

TARGET = TargetSpec("fake", "model")


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


RESERVE = ReservationRequest(1, Amount(10), Amount(10), likely=Amount(10))
