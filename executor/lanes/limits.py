"""The limits in force on a lane, and whose they are. Pure; lane.lua does the same, operation by operation.

Executors declare the limits of every batch they work on with each request for permits. A lane keeps one
entry for each origin and obeys the strictest, whichever batch a call is made for. An entry is a lease: it
expires a minute after its last renewal, and is withdrawn at once when its batch is paused or over.
"""

from dataclasses import replace

from executor.lanes.contract import Ask, LaneLimit, Policy
from executor.lanes.pace import known, least
from executor.lanes.state import LaneState, LimitInForce

LIMIT_LEASE = 60.0
"""Seconds for which a limit stays in force without being declared again."""
RENEW_AFTER = 5.0
"""Seconds after which a declaration is written again: most requests for permits change nothing."""


def declared(state: LaneState, now: float, ask: Ask) -> LaneState:
    """Renew the limits that a request declares; remove those that it withdraws, and expired ones."""
    if not (state.limits or ask.limits):
        return state
    limits = {
        origin: each
        for origin, each in state.limits.items()
        if each.until > now and origin not in ask.withdrawn
    }
    for limit in ask.limits:
        limits[limit.origin] = _renewed(limits.get(limit.origin), limit, now)
    return replace(state, limits=limits)


def _renewed(before: LimitInForce | None, limit: LaneLimit, now: float) -> LimitInForce:
    rpm, tpm, gap = known(limit.rpm), known(limit.tpm), known(limit.gap)
    renewed = LimitInForce(rpm, tpm, max(0, limit.max_concurrency or 0), gap, now + LIMIT_LEASE)
    if before is None or replace(before, until=renewed.until) != renewed:
        return renewed
    return renewed if renewed.until - before.until >= RENEW_AFTER else before


def strictest(state: LaneState, policy: Policy) -> Policy:
    """Combine the limits in force with those of one request: the strictest of each kind."""
    rpm, tpm = known(policy.rpm), known(policy.tpm)
    most, gap = max(0, policy.max_concurrency or 0), max(0.0, policy.gap)
    for each in state.limits.values():
        rpm, tpm = least(rpm, each.rpm), least(tpm, each.tpm)
        most, gap = int(least(most, each.max_concurrency)), max(gap, each.gap)
    return replace(policy, rpm=rpm or None, tpm=tpm or None, max_concurrency=most or None, gap=gap)
