"""Lanes without a shared store: each executor enforces its share of every limit."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from executor.lanes.contract import (
    AcquireRequest,
    Grant,
    LaneLimit,
    LanePolicy,
    Lanes,
    LaneView,
    Settlement,
)
from providers.limits import Headroom, RateLimits


class PerExecutorLanes:
    """`Lanes` of one executor; `share()` is the number of executors that divide each limit."""

    def __init__(self, lanes: Lanes, share: Callable[[], int]) -> None:
        self._lanes = lanes
        self._share = share

    async def acquire(self, requests: Sequence[AcquireRequest]) -> list[Grant]:
        """Settle, then grant, within this executor's share."""
        parts = max(1, self._share())
        return await self._lanes.acquire([_part_of(each, parts) for each in requests])

    async def views(self, lanes: Sequence[str]) -> list[LaneView]:
        """Return the state of this executor's share of each lane."""
        return await self._lanes.views(lanes)


def _part_of(request: AcquireRequest, parts: int) -> AcquireRequest:
    settlements = tuple(_settled(each, parts) for each in request.settlements)
    limits = tuple(_limit(each, parts) for each in request.limits)
    return replace(request, policy=_limit(request.policy, parts), settlements=settlements, limits=limits)


L = TypeVar("L", LanePolicy, LaneLimit)


def _limit(limit: L, parts: int) -> L:
    return replace(
        limit,
        rpm=_divided(limit.rpm, parts),
        tpm=_divided(limit.tpm, parts),
        max_concurrency=max(1, limit.max_concurrency // parts) if limit.max_concurrency else None,
        gap=limit.gap * parts,
    )


def _settled(settlement: Settlement, parts: int) -> Settlement:
    """Divide the limits that the provider advertises for the whole account."""
    if settlement.limits is None:
        return settlement
    requests, tokens = settlement.limits.requests, settlement.limits.tokens
    return replace(settlement, limits=RateLimits(_headroom(requests, parts), _headroom(tokens, parts)))


def _headroom(headroom: Headroom, parts: int) -> Headroom:
    limit, remaining = _divided(headroom.limit, parts), _divided(headroom.remaining, parts)
    return replace(headroom, limit=limit, remaining=remaining)


def _divided(number: float | None, parts: int) -> float | None:
    return None if number is None else number / parts
