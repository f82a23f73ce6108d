"""The rules of a budget account. Pure; budget.lua has the same operations.

    settled + reserved + estimate <= limit

is checked and changed in one step (compare-and-set). Two exceptions: a call that fits only alone gets all
that is left, while nothing else is reserved (a pessimistic estimate would strand the rest of the budget, an
unknown one everything); and the reservations of a holder that has expired become spend at their likely
cost, because its calls were paid.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from taskqueue.budget.contract import (
    NO_ACCOUNT,
    NOTHING,
    PROVIDER_BATCH,
    Amount,
    BudgetGrant,
    BudgetRequest,
    BudgetTerms,
    BudgetView,
    CostMaximum,
    HolderReservation,
    NewAccount,
    larger,
)

LEASE = 60.0
"""Seconds after which the reservations of a holder without requests become spend."""


@dataclass(frozen=True, slots=True)
class HolderState:
    """The last declaration of one holder."""

    held: Amount = NOTHING
    settled: Amount = NOTHING
    unrecorded: Amount = NOTHING
    at_risk: Amount = NOTHING
    until: float = 0.0


@dataclass(frozen=True, slots=True)
class BudgetAccount:
    """One batch's account."""

    limit_cost: int | None
    limit_tokens: int | None
    spent: Amount = NOTHING
    unrecorded: Amount = NOTHING
    needed: Amount = NOTHING
    ready_at: float = 0.0
    frozen: bool = False
    holders: Mapping[str, HolderState] = field(default_factory=dict)
    maxima: Mapping[str, CostMaximum] = field(default_factory=dict)

    @property
    def held(self) -> Amount:
        """All reservations."""
        return sum((each.held for each in self.holders.values()), NOTHING)


def publish(
    account: BudgetAccount | None, now: float, terms: BudgetTerms, create: NewAccount | None
) -> tuple[BudgetAccount | None, BudgetView | None]:
    """Adopt the recorded spend from Postgres; the spend of an account never decreases."""
    if account is None:
        if create is None:
            return None, None
        known = {name: _remembered(name, create, now) for name in {**create.settled, **create.holding}}
        ready_at = now + create.recovery if create.recovery else 0.0
        account = BudgetAccount(None, None, ready_at=ready_at, holders=known)
    account = replace(account, limit_cost=terms.limit_cost, limit_tokens=terms.limit_tokens)
    account = _lapsed(account, now, frozenset(terms.dead))
    unrecorded = larger(account.unrecorded, terms.unrecorded)
    spent = larger(account.spent, terms.recorded + unrecorded)
    frozen = account.frozen if terms.frozen is None else terms.frozen
    account = replace(account, unrecorded=unrecorded, spent=spent, frozen=frozen)
    return account, view(account)


def _remembered(name: str, create: NewAccount, now: float) -> HolderState:
    holding, settled = create.holding.get(name, HolderReservation()), create.settled.get(name, NOTHING)
    until = now + LEASE if holding.held else 0.0
    return HolderState(holding.held, settled, NOTHING, holding.at_risk, until)


def request(
    account: BudgetAccount | None, now: float, asked: BudgetRequest
) -> tuple[BudgetAccount | None, BudgetGrant]:
    """Apply a holder's declaration, then reserve what fits."""
    if account is None:
        return None, NO_ACCOUNT
    account = _declared(_lapsed(account, now, frozenset()), now, asked)
    used = account.spent + account.held
    granted, reserved = _room(account, now, asked)
    account = _reserved(account, asked, granted, reserved)
    return account, BudgetGrant(
        exists=True,
        granted=granted,
        reserved=reserved,
        used=used,
        limits_cost=account.limit_cost is not None,
        limits_tokens=account.limit_tokens is not None,
        maxima=account.maxima,
    )


def view(account: BudgetAccount) -> BudgetView:
    """Describe an account."""
    holders = {
        name: HolderReservation(each.held, each.at_risk)
        for name, each in account.holders.items()
        if each.held
    }
    settled = {name: each.settled - each.unrecorded for name, each in account.holders.items()}
    return BudgetView(
        account.spent, account.held, account.unrecorded, account.needed, holders, account.maxima, settled
    )


def _lapsed(account: BudgetAccount, now: float, dead: frozenset[str]) -> BudgetAccount:
    """Convert the reservations of expired holders to spend; Postgres records those of provider batches."""
    holders, spent, unrecorded = dict(account.holders), account.spent, account.unrecorded
    for name, each in account.holders.items():
        if not each.held or (each.until > now and name not in dead):
            continue
        holders[name] = replace(each, held=NOTHING, at_risk=NOTHING)
        if not name.startswith(PROVIDER_BATCH):
            lost = _lost(account, each)
            spent, unrecorded = spent + lost, unrecorded + lost
            counted = each.settled + lost, each.unrecorded + lost
            holders[name] = HolderState(NOTHING, *counted, until=each.until)
    return replace(account, holders=holders, spent=spent, unrecorded=unrecorded)


def _lost(account: BudgetAccount, state: HolderState) -> Amount:
    """Count no more than was reserved, where there is a limit."""
    cost, tokens = state.at_risk.cost, state.at_risk.tokens
    return Amount(
        cost if account.limit_cost is None else min(cost, state.held.cost),
        tokens if account.limit_tokens is None else min(tokens, state.held.tokens),
    )


def _declared(account: BudgetAccount, now: float, asked: BudgetRequest) -> BudgetAccount:
    was = account.holders.get(asked.holder, HolderState())
    settled = larger(was.settled, asked.settled)
    unrecorded = larger(was.unrecorded, asked.unrecorded)
    state = HolderState(asked.held, settled, unrecorded, asked.at_risk, now + LEASE)
    maxima = dict(account.maxima)
    for purpose, each in asked.maxima.items():
        maxima[purpose] = maxima.get(purpose, CostMaximum()).merged(each)
    return replace(
        account,
        spent=account.spent + (settled - was.settled),
        unrecorded=account.unrecorded + (unrecorded - was.unrecorded),
        holders={**account.holders, asked.holder: state},
        maxima=maxima,
    )


def _room(account: BudgetAccount, now: float, asked: BudgetRequest) -> tuple[int, Amount]:
    if asked.wanted <= 0 or account.frozen or now < account.ready_at:
        return 0, NOTHING
    held = account.held
    granted = asked.wanted
    for limit, spent, taken, unit in _limited(account, held, asked.unit):
        if unit > 0:
            granted = min(granted, max(0, limit - spent - taken) // unit)
    if granted > 0:
        return granted, _within(account, asked.unit)
    if held == asked.own and _fits_alone(account, asked):
        return 1, _left(account, held)
    return 0, NOTHING


def _fits_alone(account: BudgetAccount, asked: BudgetRequest) -> bool:
    return all(
        limit - spent >= max(1, least) for limit, spent, _, least in _limited(account, NOTHING, asked.least)
    )


def _limited(account: BudgetAccount, held: Amount, each: Amount) -> list[tuple[int, int, int, int]]:
    """List limit, spend, reservations and one call's share of each figure that has a limit."""
    spent, found = account.spent, list[tuple[int, int, int, int]]()
    if account.limit_cost is not None:
        found.append((account.limit_cost, spent.cost, held.cost, each.cost))
    if account.limit_tokens is not None:
        found.append((account.limit_tokens, spent.tokens, held.tokens, each.tokens))
    return found


def _within(account: BudgetAccount, unit: Amount) -> Amount:
    """Reserve only what has a limit."""
    cost = unit.cost if account.limit_cost is not None else 0
    return Amount(cost, unit.tokens if account.limit_tokens is not None else 0)


def _left(account: BudgetAccount, held: Amount) -> Amount:
    cost, tokens = account.limit_cost or 0, account.limit_tokens or 0
    return Amount(cost, tokens) - account.spent - held


def _reserved(account: BudgetAccount, asked: BudgetRequest, granted: int, each: Amount) -> BudgetAccount:
    if granted:
        state = account.holders[asked.holder]
        held = state.held + Amount(each.cost * granted, each.tokens * granted)
        likely = asked.likely
        at_risk = state.at_risk + Amount(likely.cost * granted, likely.tokens * granted)
        state = replace(state, held=held, at_risk=at_risk)
        holders = {**account.holders, asked.holder: state}
        # A smaller call that fits gives no information about the one that did not.
        is_met = larger(asked.least, account.needed) == asked.least
        return replace(account, holders=holders, needed=NOTHING if is_met else account.needed)
    if asked.wanted > 0 and not _fits_alone(account, asked):
        return replace(account, needed=Amount(max(1, asked.least.cost), max(1, asked.least.tokens)))
    return account
