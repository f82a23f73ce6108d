"""Budget reservations of provider batches: made before one is stored, held until its results are recorded.

The row of a provider batch stores its reservation, so each cycle declares it again, even if Redis lost the
account. The coordinator records the results in Postgres; after that, the reservation is held a little
longer, until the account has been published with them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from coordinator.provider_batches.outcomes import Outcome
from coordinator.provider_batches.result_reader import price_in_batches
from domain.batch_spec import TargetSpec
from eventlog import payloads as p
from projections.ledger.batch import Batch
from projections.ledger.provider_batches import ProviderBatch
from providers.prices import BATCH_DISCOUNT, FREE
from providers.requests import characters_of, max_output_of
from taskqueue.budget.contract import (
    NOT_OBSERVED,
    NOTHING,
    PROVIDER_BATCH,
    UNKNOWN,
    Amount,
    BudgetAccounts,
    BudgetRequest,
    CostMaximum,
    nanodollars,
)
from taskqueue.budget.estimates import Calibration, Estimate, RequestSize, estimate

KEPT = 5.0
"""Seconds for which a reservation outlives its results."""


@dataclass(slots=True)
class Allowance:
    """The room that the budget leaves for one provider batch; unlimited without a budget."""

    room: Amount = NOTHING
    """The rest of the budget; a figure without a limit is unlimited."""
    maximum: CostMaximum = NOT_OBSERVED
    reserved: Amount = NOTHING
    least: Amount = NOTHING
    requests: int = 0
    is_limited: bool = False

    def take(self, params: Mapping[str, Any], target: TargetSpec, environ: Mapping[str, str]) -> bool:
        """Add a request if it fits; the first always does, and `reserve` grants or rejects it."""
        if not self.is_limited:
            return True
        expected = _expected(params, target, environ, self.maximum)
        together = self.reserved + expected.unit
        fits = together.cost <= self.room.cost and together.tokens <= self.room.tokens
        if self.requests and not fits:
            return False
        self.reserved, self.least = together, self.least + expected.least
        self.requests += 1
        return True


def _expected(
    params: Mapping[str, Any], target: TargetSpec, environ: Mapping[str, str], maximum: CostMaximum
) -> Estimate:
    price = price_in_batches(target, environ) or FREE
    size = RequestSize(
        characters_of(params),
        max_output_of(params),
        price.input * BATCH_DISCOUNT,
        price.output * BATCH_DISCOUNT,
    )
    return estimate(maximum, size, Calibration())


class BatchReservations:
    """Reserves budget for provider batches."""

    def __init__(self, accounts: BudgetAccounts, *, clock: Callable[[], float]) -> None:
        self._accounts = accounts
        self._clock = clock
        self._closing: dict[str, tuple[ProviderBatch, float]] = {}
        self._maxima: dict[str, CostMaximum] = {}

    async def allowance(self, batch: Batch, target: int) -> Allowance:
        """Return the room for a provider batch of a target, without reserving it."""
        if not batch.budget.is_limited:
            return Allowance()
        [grant] = await self._accounts.request([BudgetRequest(batch.batch_id, f"{PROVIDER_BATCH}-")])
        whole = grant.maxima.get(f"target:{target}", NOT_OBSERVED)
        discounted = CostMaximum(whole.calls, int(whole.cost * BATCH_DISCOUNT), whole.tokens)
        limit = Amount(
            UNKNOWN if batch.budget.max_cost_usd is None else nanodollars(batch.budget.max_cost_usd),
            UNKNOWN if batch.budget.max_tokens is None else batch.budget.max_tokens,
        )
        return Allowance(limit - grant.used, discounted, is_limited=True)

    async def reserve(self, batch: Batch, provider_batch_id: str, allowance: Allowance) -> Amount | None:
        """Reserve for a whole provider batch; None where the budget has no room for it."""
        if not allowance.is_limited:
            return NOTHING
        unit = allowance.reserved
        request = BudgetRequest(
            batch.batch_id, _holder(provider_batch_id), wanted=1, unit=unit, least=allowance.least
        )
        [grant] = await self._accounts.request([request])
        return grant.reserved if grant.granted else None

    async def declare(self, provider_batches: Sequence[ProviderBatch]) -> None:
        """Declare the reservations of open provider batches, and release those of closed ones."""
        now = self._clock()
        done = [provider_batch for provider_batch, due in self._closing.values() if due <= now]
        held = [each for each in provider_batches if each.reserved_cost or each.reserved_tokens]
        await self._accounts.request([*map(_declaration, held), *map(self._release, done)])
        for provider_batch in done:
            del self._closing[provider_batch.id]

    def observe(self, provider_batch: ProviderBatch, outcomes: Iterable[Outcome]) -> None:
        """Add the cost of answers to the observed maxima."""
        most = self._maxima.get(provider_batch.id, NOT_OBSERVED)
        for each in outcomes:
            if isinstance(each, p.Answer):
                whole = nanodollars(each.cost_usd / BATCH_DISCOUNT)
                most = most.merged(CostMaximum(most.calls + 1, whole, each.usage.total))
        self._maxima[provider_batch.id] = most

    def close(self, provider_batch: ProviderBatch) -> None:
        """Release a reservation once its results are counted."""
        if provider_batch.reserved_cost or provider_batch.reserved_tokens:
            self._closing[provider_batch.id] = provider_batch, self._clock() + KEPT

    def _release(self, provider_batch: ProviderBatch) -> BudgetRequest:
        most = self._maxima.pop(provider_batch.id, NOT_OBSERVED)
        maxima = {f"target:{provider_batch.target}": most} if most.calls else {}
        return BudgetRequest(provider_batch.batch_id, _holder(provider_batch.id), maxima=maxima)


def _holder(provider_batch_id: str) -> str:
    return f"{PROVIDER_BATCH}{provider_batch_id}"


def _declaration(provider_batch: ProviderBatch) -> BudgetRequest:
    held = Amount(provider_batch.reserved_cost, provider_batch.reserved_tokens)
    return BudgetRequest(provider_batch.batch_id, _holder(provider_batch.id), held=held)
