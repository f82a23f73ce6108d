"""The budget of one active task: a reservation that its calls draw on.

It is reserved with the task, for the target and its paid evaluators together, so that a started attempt can
be completed. A call with a longer prompt than estimated tops the reservation up. A call that raised without
a reply is settled at 0; one that may have been charged, at its likely cost.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import NamedTuple, TypeVar

from eventlog.payloads import TokenUsage
from executor.budget.client import NOT_RESERVED, BudgetClient, Reservation, ReservationRequest
from executor.contract import CallFault, RateLimited
from executor.outcome import EvaluatorTimedOut, TargetTimedOut
from taskqueue.budget.contract import NOTHING, Amount, nanodollars
from taskqueue.budget.estimates import Calibration, Estimate, RequestSize, estimate
from taskqueue.tasks import QueueUnavailable

T = TypeVar("T")

PERHAPS_PAID = frozenset({"timeout", "invalid_response", "broken_stream", "content_filter"})
"""Kinds of faults after which a provider may charge for an answer that was lost."""
RETRY_AFTER = timedelta(seconds=1)


class InsufficientBudget(RateLimited):
    """The batch's budget has no room for a call now: the attempt is requeued, no retry is used."""

    def __init__(self, why: str) -> None:
        super().__init__(why, retry_after=RETRY_AFTER)


class CallCost(NamedTuple):
    """The tokens and the cost of a call."""

    usage: TokenUsage
    cost_usd: float

    @property
    def amount(self) -> Amount:
        """The same as an amount."""
        return Amount(nanodollars(self.cost_usd), self.usage.total)


@dataclass(frozen=True, slots=True)
class BillableCall:
    """One kind of call, and how large this one is."""

    purpose: str
    """`target:0`, `judge:style`: calls with similar costs."""
    size: RequestSize | None = None
    is_free: bool = False
    """Whether such calls are free until one is seen to cost something."""


@dataclass(slots=True)
class Calibrations:
    """Observations of this process, by batch and kind of call."""

    known: dict[tuple[str, str], Calibration] = field(default_factory=dict)

    def of(self, batch_id: str, purpose: str) -> Calibration:
        """Return the observations of one kind of call."""
        return self.known.get((batch_id, purpose), Calibration())


class TaskBudget:
    """The budget of one active task; unlimited for a batch without a budget."""

    def __init__(
        self,
        client: BudgetClient | None = None,
        calibrations: Calibrations | None = None,
        *,
        batch_id: str = "",
        reserved: Reservation = NOT_RESERVED,
    ) -> None:
        self._client = client
        self._calibrations = calibrations or Calibrations()
        self._batch_id = batch_id
        self._left, self._likely = reserved

    @property
    def is_limited(self) -> bool:
        """Whether there is a budget."""
        return self._client is not None

    async def pay_for(
        self,
        make: Callable[[], BillableCall],
        call: Callable[[], Awaitable[T]],
        paid: Callable[[T], CallCost],
    ) -> T:
        """Reserve for one call, make it, and settle it; raises `InsufficientBudget`."""
        client = self._client
        if client is None:
            return await call()
        planned = make()
        expected = self.expected(planned)
        drawn = self._with_likely(await self._drawn(client, expected), expected.likely)
        try:
            got = await call()
        except BaseException as error:
            actual = expected.likely if _may_be_paid(error) else NOTHING
            client.settle(self._batch_id, drawn, actual, recorded=False)
            raise
        came_to = paid(got)
        self._observe(client, planned, came_to)
        client.settle(self._batch_id, drawn, came_to.amount)
        await _declare(client)
        return got

    def expected(self, planned: BillableCall) -> Estimate:
        """Estimate a call from observations."""
        if self._client is None:
            return Estimate()
        maximum = self._client.maximum(self._batch_id, planned.purpose)
        calibration = self._calibrations.of(self._batch_id, planned.purpose)
        found = estimate(maximum, planned.size, calibration, is_free=planned.is_free)
        if not maximum.calls:
            return found
        return found._replace(likely=self._client.typical(self._batch_id, planned.purpose))

    def release(self) -> None:
        """Release the rest of the reservation."""
        if self._client:
            self._client.release(self._batch_id, Reservation(self._left, self._likely))
            self._left = self._likely = NOTHING

    def _with_likely(self, drawn: Amount, likely: Amount) -> Reservation:
        left = self._likely - likely
        taken, self._likely = self._likely - left, left
        return Reservation(drawn, taken)

    async def _drawn(self, client: BudgetClient, expected: Estimate) -> Amount:
        needed = client.batch(self._batch_id).masked(expected.unit)
        drawn = Amount(min(needed.cost, self._left.cost), min(needed.tokens, self._left.tokens))
        self._left -= drawn
        if not (missing := needed - drawn):
            return drawn
        try:
            return drawn + await self._top_up(client, missing, expected.least, own=drawn + self._left)
        except BaseException:
            self._left += drawn
            raise

    async def _top_up(self, client: BudgetClient, missing: Amount, least: Amount, *, own: Amount) -> Amount:
        wanted = ReservationRequest(1, missing, least, own=own)
        try:
            grants = await client.reserve({self._batch_id: wanted})
        except QueueUnavailable as error:
            raise InsufficientBudget(f"the budget account is unavailable: {error}") from error
        grant = grants[self._batch_id]
        if not grant.granted:
            raise InsufficientBudget("the batch's budget has no room for this call now")
        return grant.reserved

    def _observe(self, client: BudgetClient, planned: BillableCall, paid: CallCost) -> None:
        if planned.is_free and not paid.amount:
            return
        client.observe(self._batch_id, planned.purpose, paid.amount)
        if planned.size:
            key = (self._batch_id, planned.purpose)
            was = self._calibrations.of(*key)
            self._calibrations.known[key] = was.observed(planned.size, paid.usage)


async def _declare(client: BudgetClient) -> None:
    """Declare a settlement before its event can be appended; a lost one is declared again soon."""
    with suppress(QueueUnavailable):
        await client.declare_settlements()


def _may_be_paid(error: BaseException) -> bool:
    match error:
        case RateLimited():
            return False
        case CallFault(kind=kind):
            return kind in PERHAPS_PAID
        case TargetTimedOut() | EvaluatorTimedOut() | asyncio.CancelledError():
            return True
        case _:
            return False


UNLIMITED_BUDGET = TaskBudget()
"""For batches without a budget."""
