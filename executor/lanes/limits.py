"""The limits that batches declare on a lane, held as leases. Pure; lane.lua has the same operations.

With each request for permits an executor declares the limits of every batch it works on. A lane keeps one
entry per origin and applies the strictest of all, whichever batch a call is for. An entry expires a minute
after its last renewal, and is withdrawn at once when its batch is paused or finished.
"""

from dataclasses import replace

from executor.lanes.contract import AcquireRequest, LaneLimit, LanePolicy
from executor.lanes.gcra import stricter, valid_limit
from executor.lanes.state import LaneState, LimitInForce

LIMIT_LEASE = 60.0
"""Seconds after which a limit expires unless it is declared again."""
RENEW_AFTER = 5.0
"""Seconds after which a declaration is written again: most requests change nothing."""


def declare(state: LaneState, now: float, request: AcquireRequest) -> LaneState:
    """Renew the limits that a request declares; remove those that it withdraws, and expired ones."""
    if not (state.limits or request.limits):
        return state
    limits = {
        origin: each
        for origin, each in state.limits.items()
        if each.until > now and origin not in request.withdrawn
    }
    for limit in request.limits:
        limits[limit.origin] = _renewed(limits.get(limit.origin), limit, now)
    return replace(state, limits=limits)


def _renewed(before: LimitInForce | None, limit: LaneLimit, now: float) -> LimitInForce:
    rpm, tpm, gap = valid_limit(limit.rpm), valid_limit(limit.tpm), valid_limit(limit.gap)
    renewed = LimitInForce(rpm, tpm, max(0, limit.max_concurrency or 0), gap, now + LIMIT_LEASE)
    if before is None or replace(before, until=renewed.until) != renewed:
        return renewed
    return renewed if renewed.until - before.until >= RENEW_AFTER else before


def strictest(state: LaneState, policy: LanePolicy) -> LanePolicy:
    """Combine the limits in force with those of one request: the strictest of each kind."""
    rpm, tpm = valid_limit(policy.rpm), valid_limit(policy.tpm)
    max_concurrency, gap = max(0, policy.max_concurrency or 0), max(0.0, policy.gap)
    for each in state.limits.values():
        rpm, tpm = stricter(rpm, each.rpm), stricter(tpm, each.tpm)
        max_concurrency, gap = int(stricter(max_concurrency, each.max_concurrency)), max(gap, each.gap)
    return replace(
        policy, rpm=rpm or None, tpm=tpm or None, max_concurrency=max_concurrency or None, gap=gap
    )
