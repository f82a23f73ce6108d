"""Budget accounts in memory: one process, tests and simulations."""

from collections.abc import Callable, Sequence

from typing_extensions import override

from taskqueue.budget import account as rules
from taskqueue.budget.account import BudgetAccount
from taskqueue.budget.contract import (
    BudgetAccounts,
    BudgetGrant,
    BudgetRequest,
    BudgetTerms,
    BudgetView,
    NewAccount,
)


class MemoryBudgets(BudgetAccounts):
    """`BudgetAccounts` of this process; `now` returns Unix seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._accounts: dict[str, BudgetAccount | None] = {}

    async def request(self, requests: Sequence[BudgetRequest]) -> list[BudgetGrant]:
        """Declare, settle and reserve."""
        return [self._requested(each) for each in requests]

    def _requested(self, asked: BudgetRequest) -> BudgetGrant:
        account = self._accounts.get(asked.batch_id)
        self._accounts[asked.batch_id], grant = rules.request(account, self._now(), asked)
        return grant

    async def publish(self, terms: BudgetTerms, *, create: NewAccount | None = None) -> BudgetView | None:
        """Set the limits and the recorded spend."""
        account = self._accounts.get(terms.batch_id)
        self._accounts[terms.batch_id], seen = rules.publish(account, self._now(), terms, create)
        return seen

    @override
    async def close(self, batch_id: str) -> None:
        self._accounts.pop(batch_id, None)
