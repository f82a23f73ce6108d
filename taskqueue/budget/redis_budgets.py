"""Budget accounts on Redis: one hash per batch, one script that settles and reserves on the server's clock.

A request whose reply was lost may have reserved an amount. The next request of the same holder declares
what it holds, and so releases it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from typing_extensions import override

from eventlog.scripts import Call, Script
from taskqueue.budget.contract import (
    NO_ACCOUNT,
    NOTHING,
    Amount,
    BudgetAccounts,
    BudgetGrant,
    BudgetRequest,
    BudgetTerms,
    BudgetView,
    CostMaximum,
    HolderReservation,
    NewAccount,
)
from taskqueue.refusals import QUEUE_ERRORS

STAYS = 30 * 86_400
"""Seconds after which an unused account expires."""

_BUDGET = Script(Path(__file__).parent / "budget.lua")


def budget_key(batch_id: str) -> str:
    """Return the Redis key of a batch's account."""
    return f"eval:budget:{{{batch_id}}}"


class RedisBudgets(BudgetAccounts):
    """`BudgetAccounts` on a Redis or Valkey server; only a test passes a `now` of its own."""

    def __init__(self, redis: Redis, *, now: Callable[[], float] | None = None) -> None:
        self._redis = redis
        self._now = now

    @override
    async def request(self, requests: Sequence[BudgetRequest]) -> list[BudgetGrant]:
        if not requests:
            return []
        with QUEUE_ERRORS:
            replies = await _BUDGET.run(self._redis, [self._request(each) for each in requests])
        return [_grant(reply) for reply in replies]

    @override
    async def publish(self, terms: BudgetTerms, *, create: NewAccount | None = None) -> BudgetView | None:
        with QUEUE_ERRORS:
            [reply] = await _BUDGET.run(self._redis, [self._publish(terms, create)])
        return _view(reply) if reply else None

    @override
    async def close(self, batch_id: str) -> None:
        with QUEUE_ERRORS:
            await self._redis.unlink(budget_key(batch_id))

    def _request(self, asked: BudgetRequest) -> Call:
        arguments: list[Any] = ["request", self._clock(), STAYS, asked.holder]
        arguments += _flat(asked.held, asked.settled, asked.unrecorded, asked.at_risk)
        arguments += [asked.wanted, *_flat(asked.unit, asked.least, asked.own, asked.likely)]
        for purpose, each in asked.maxima.items():
            arguments += [purpose, *each]
        return [budget_key(asked.batch_id)], arguments

    def _publish(self, terms: BudgetTerms, create: NewAccount | None) -> Call:
        arguments: list[Any] = ["publish", self._clock(), STAYS]
        arguments += [_text(terms.limit_cost), _text(terms.limit_tokens)]
        arguments += _flat(terms.recorded, terms.unrecorded)
        arguments.append("" if terms.frozen is None else int(terms.frozen))
        arguments += ["" if create is None else create.recovery, len(terms.dead), *terms.dead]
        create = create or NewAccount()
        for holder in {**create.settled, **create.holding}:
            settled = create.settled.get(holder, NOTHING)
            arguments += [holder, *_flat(settled, *create.holding.get(holder, HolderReservation()))]
        return [budget_key(terms.batch_id)], arguments

    def _clock(self) -> str:
        return format(self._now(), ".17g") if self._now else ""


def _flat(*amounts: Amount) -> Iterable[int]:
    return [figure for each in amounts for figure in (each.cost, each.tokens)]


def _text(limit: int | None) -> str:
    return "" if limit is None else str(limit)


def _grant(reply: Sequence[Any]) -> BudgetGrant:
    if not reply:
        return NO_ACCOUNT
    granted, cost, tokens, used_cost, used_tokens, limits_cost, limits_tokens, maxima = reply
    reserved = Amount(int(cost), int(tokens))
    return BudgetGrant(
        exists=True,
        granted=granted,
        reserved=reserved,
        used=Amount(int(used_cost), int(used_tokens)),
        limits_cost=bool(limits_cost),
        limits_tokens=bool(limits_tokens),
        maxima=_maxima(maxima),
    )


def _view(reply: Sequence[Any]) -> BudgetView:
    figures, (holding, maxima, settled) = list(map(int, reply[:8])), reply[8:]
    spent, held, unrecorded, needed = (Amount(*figures[at : at + 2]) for at in range(0, 8, 2))
    holders = {
        holding[at].decode(): _holding(*map(int, holding[at + 1 : at + 5]))
        for at in range(0, len(holding), 5)
    }
    spans = range(0, len(settled), 3)
    by_holder = {settled[at].decode(): Amount(*map(int, settled[at + 1 : at + 3])) for at in spans}
    return BudgetView(spent, held, unrecorded, needed, holders, _maxima(maxima), by_holder)


def _holding(cost: int, tokens: int, cost_at_risk: int, tokens_at_risk: int) -> HolderReservation:
    return HolderReservation(Amount(cost, tokens), Amount(cost_at_risk, tokens_at_risk))


def _maxima(flat: Sequence[bytes]) -> Mapping[str, CostMaximum]:
    return {
        flat[at].decode(): CostMaximum(*map(int, flat[at + 1 : at + 4])) for at in range(0, len(flat), 4)
    }
