"""The executor's client of budget accounts: its reservations, settlements and observed costs.

Every request declares all of them, so a request may be lost or repeated. One request is in flight at a
time. The cost of a call is declared before its event is appended: spend that Postgres has recorded is never
new to the account, which would count it twice. Everything else is sent with the next request, or by itself
after `LINGER`; it is declared again every second, so that a lost account is complete soon after it is
published again.
"""

import asyncio
from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from taskqueue.budget.contract import (
    NOTHING,
    Amount,
    BudgetAccounts,
    BudgetGrant,
    BudgetRequest,
    CostMaximum,
)
from taskqueue.tasks import QueueUnavailable

LINGER = 0.025
"""Seconds for which a settlement waits for others."""
RENEW = 1.0
"""Seconds between two declarations."""


class Reservation(NamedTuple):
    """A reservation, and what likely is spent of it."""

    amount: Amount = NOTHING
    likely: Amount = NOTHING


NOT_RESERVED = Reservation()


@dataclass(frozen=True, slots=True)
class ReservationRequest:
    """How many calls of a batch to reserve, and the amounts of each."""

    wanted: int
    unit: Amount
    least: Amount
    own: Amount = NOTHING
    likely: Amount = NOTHING


class ObservedCost(NamedTuple):
    """Calls of one kind that this executor has made, and what they cost together."""

    calls: int = 0
    total: Amount = NOTHING


@dataclass(slots=True)
class BatchSpend:
    """One batch, as far as this executor is concerned."""

    held: Amount = NOTHING
    settled: Amount = NOTHING
    unrecorded: Amount = NOTHING
    at_risk: Amount = NOTHING
    is_declared: bool = True
    """Whether the account has all of it: a release that was never declared would count as a call."""
    observed: dict[str, ObservedCost] = field(default_factory=dict)
    limits_cost: bool = True
    limits_tokens: bool = True
    maxima: dict[str, CostMaximum] = field(default_factory=dict)

    def masked(self, amount: Amount) -> Amount:
        """Leave out what has no limit."""
        return Amount(amount.cost if self.limits_cost else 0, amount.tokens if self.limits_tokens else 0)


class BudgetClient:
    """Reserves and settles for one executor instance."""

    def __init__(self, accounts: BudgetAccounts, *, holder: str) -> None:
        self._accounts = accounts
        self._holder = holder
        self._batches: dict[str, BatchSpend] = {}
        self._asking = asyncio.Lock()
        self._news = asyncio.Event()
        self._settlements = 0
        self._settlements_declared = 0

    def batch(self, batch_id: str) -> BatchSpend:
        """Return the state of a batch."""
        return self._batches.setdefault(batch_id, BatchSpend())

    def maximum(self, batch_id: str, purpose: str) -> CostMaximum:
        """Return the fleet's largest observed cost of one kind of call."""
        return self.batch(batch_id).maxima.get(purpose, CostMaximum())

    async def reserve(self, wanted: Mapping[str, ReservationRequest]) -> dict[str, BudgetGrant]:
        """Reserve for several batches in one round trip; raises `QueueUnavailable`."""
        async with self._asking:
            for batch_id in wanted:  # the reservation is unknown if the reply is lost
                self.batch(batch_id).is_declared = False
            grants = await self._request(wanted)
            for batch_id, grant in grants.items():
                spend = self.batch(batch_id)
                each = grant.reserved
                spend.held += Amount(each.cost * grant.granted, each.tokens * grant.granted)
                likely = wanted[batch_id].likely
                spend.at_risk += Amount(likely.cost * grant.granted, likely.tokens * grant.granted)
            return grants

    def release(self, batch_id: str, reserved: Reservation) -> None:
        """Give a reservation back."""
        if reserved.amount or reserved.likely:
            spend = self.batch(batch_id)
            spend.held -= reserved.amount
            spend.at_risk -= reserved.likely
            spend.is_declared = False
            self._news.set()

    def settle(self, batch_id: str, drawn: Reservation, actual: Amount, *, recorded: bool = True) -> None:
        """Replace a reservation by what the call cost."""
        spend, reserved = self.batch(batch_id), drawn.amount
        spend.held -= reserved
        spend.at_risk -= drawn.likely
        spend.settled += actual
        self._settlements += 1
        if not recorded:
            spend.unrecorded += actual
        if reserved or actual:
            spend.is_declared = False
            self._news.set()

    def observe(self, batch_id: str, purpose: str, actual: Amount) -> None:
        """Remember what a call of one kind cost."""
        was = self.maximum(batch_id, purpose)
        seen = CostMaximum(was.calls + 1, actual.cost, actual.tokens)
        spend = self.batch(batch_id)
        spend.maxima[purpose] = was.merged(seen)
        calls, total = spend.observed.get(purpose, ObservedCost())
        spend.observed[purpose] = ObservedCost(calls + 1, total + actual)

    def typical(self, batch_id: str, purpose: str) -> Amount:
        """Return what a call of one kind likely costs: midway from the mean to the maximum."""
        calls, total = self.batch(batch_id).observed.get(purpose, ObservedCost())
        most = self.maximum(batch_id, purpose)
        if not calls:
            return Amount(most.cost, most.tokens)
        return Amount((total.cost // calls + most.cost) // 2, (total.tokens // calls + most.tokens) // 2)

    def forget_all_but(self, batch_ids: Container[str]) -> None:
        """Drop batches that have ended, once nothing of them is reserved and that is declared."""
        gone = [
            key
            for key, each in self._batches.items()
            if key not in batch_ids and not each.held and each.is_declared
        ]
        for batch_id in gone:
            del self._batches[batch_id]

    async def run(self) -> None:
        """Declare until cancelled."""
        while True:
            try:
                async with asyncio.timeout(RENEW):
                    await self._news.wait()
            except TimeoutError:
                pass  # time to declare again
            await asyncio.sleep(LINGER)
            self._news.clear()
            try:
                await self.declare()
            except QueueUnavailable:
                await asyncio.sleep(LINGER * 10)  # declared again with the next request

    async def declare(self, *, unless: Callable[[], bool] = lambda: False) -> None:
        """Declare the state of all batches, unless the preceding request has already done so."""
        async with self._asking:
            if unless():
                return
            declared, settlements = dict(self._batches), self._settlements
            for spend in declared.values():
                spend.is_declared = True
            try:
                await self._request({key: ReservationRequest(0, NOTHING, NOTHING) for key in declared})
            except BaseException:
                for spend in declared.values():
                    spend.is_declared = False
                raise
            self._settlements_declared = settlements

    async def declare_settlements(self) -> None:
        """Return once all settlements so far are declared; callers share round trips."""
        settled = self._settlements
        while self._settlements_declared < settled:
            await self.declare(unless=lambda: self._settlements_declared >= settled)

    async def close(self) -> None:
        """Declare for the last time: no call is in flight, so nothing is reserved."""
        for spend in self._batches.values():
            spend.held = spend.at_risk = NOTHING
        await self.declare()

    async def _request(self, wanted: Mapping[str, ReservationRequest]) -> dict[str, BudgetGrant]:
        requests = [self._asked(batch_id, each) for batch_id, each in wanted.items()]
        grants = dict(zip(wanted, await self._accounts.request(requests), strict=True)) if requests else {}
        for batch_id, grant in grants.items():
            if grant.exists:
                self._learn(self.batch(batch_id), grant)
        return grants

    def _asked(self, batch_id: str, reserve: ReservationRequest) -> BudgetRequest:
        spend = self.batch(batch_id)
        return BudgetRequest(
            batch_id,
            self._holder,
            *(spend.held, spend.settled, spend.unrecorded, spend.at_risk),
            wanted=reserve.wanted,
            unit=reserve.unit,
            least=reserve.least,
            own=reserve.own,
            likely=reserve.likely,
            maxima=dict(spend.maxima),
        )

    @staticmethod
    def _learn(spend: BatchSpend, grant: BudgetGrant) -> None:
        spend.limits_cost, spend.limits_tokens = grant.limits_cost, grant.limits_tokens
        for purpose, each in grant.maxima.items():
            spend.maxima[purpose] = spend.maxima.get(purpose, CostMaximum()).merged(each)
