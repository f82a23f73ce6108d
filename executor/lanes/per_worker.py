"""Lanes without a shared store: each executor keeps to its share of what all may use."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from executor.lanes.contract import Ask, Grant, LaneLimit, Lanes, LaneView, Policy, Settlement
from providers.limits import Headroom, RateLimits


class PerWorkerLanes:
    """`Lanes` of one executor, which takes one part of `share()`; it asks that anew each time."""

    def __init__(self, lanes: Lanes, share: Callable[[], int]) -> None:
        self._lanes = lanes
        self._share = share

    async def ask(self, asks: Sequence[Ask]) -> list[Grant]:
        """Ask for this executor's part."""
        parts = max(1, self._share())
        return await self._lanes.ask([_part_of(each, parts) for each in asks])

    async def views(self, lanes: Sequence[str]) -> list[LaneView]:
        """Say how this executor's part of each lane stands."""
        return await self._lanes.views(lanes)


def _part_of(ask: Ask, parts: int) -> Ask:
    settlements = tuple(_settled(each, parts) for each in ask.settlements)
    limits = tuple(_limit(each, parts) for each in ask.limits)
    return replace(ask, policy=_limit(ask.policy, parts), settlements=settlements, limits=limits)


L = TypeVar("L", Policy, LaneLimit)


def _limit(limit: L, parts: int) -> L:
    return replace(
        limit,
        rpm=_divided(limit.rpm, parts),
        tpm=_divided(limit.tpm, parts),
        max_concurrency=max(1, limit.max_concurrency // parts) if limit.max_concurrency else None,
        gap=limit.gap * parts,
    )


def _settled(settlement: Settlement, parts: int) -> Settlement:
    """What the other side says is meant for all."""
    if settlement.limits is None:
        return settlement
    requests, tokens = settlement.limits.requests, settlement.limits.tokens
    return replace(settlement, limits=RateLimits(_headroom(requests, parts), _headroom(tokens, parts)))


def _headroom(headroom: Headroom, parts: int) -> Headroom:
    limit, remaining = _divided(headroom.limit, parts), _divided(headroom.remaining, parts)
    return replace(headroom, limit=limit, remaining=remaining)


def _divided(number: float | None, parts: int) -> float | None:
    return None if number is None else number / parts
