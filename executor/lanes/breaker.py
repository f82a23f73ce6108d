"""The circuit breaker: a lane whose other side is not there is left alone, then probed. Pure; see lane.lua.

    closed      failures in a row reach the limit            open
    open        its time is over                             half open: one probe in the whole fleet
    half open   the probe fails                              open
    any         the other side answers, whatever it says     closed

An answer to a call from before it opened closes it, too: it proves that the other side is there. A failure
of such a call proves nothing new, and is not counted.
"""

from dataclasses import replace

from executor.lanes.contract import Policy
from executor.lanes.growth import start_of
from executor.lanes.state import LaneState

FIRST_CONTACT_PROBE = 5.0
"""Seconds between two probes, at most, of a lane whose other side has never answered."""
PROBE_LEASE = 2.0
"""How often over its open time a probe is waited for, before its executor is taken for dead."""


def standing(state: LaneState, now: float) -> str:
    """Say closed, open, or half_open."""
    if not state.open_until:
        return "closed"
    return "open" if now < state.open_until else "half_open"


def failed(state: LaneState, now: float, *, age: float, policy: Policy) -> LaneState:
    """Count a failure, and open where that was one too many, or the probe."""
    if now - age < state.opened_at:
        return state
    state = replace(state, failures=state.failures + 1)
    if not state.open_until and state.failures < policy.breaker_failures:
        return state
    return replace(
        state,
        broken_at=state.broken_at if state.open_until else now,
        opened_at=now,
        open_until=now + _open_for(state, policy),
        probe_until=0.0,
    )


def _open_for(state: LaneState, policy: Policy) -> float:
    if state.reached_at:
        return policy.breaker_seconds
    return min(policy.breaker_seconds, FIRST_CONTACT_PROBE)


def answered(state: LaneState, now: float, policy: Policy) -> LaneState:
    """Close, since the other side is there; slowly, so that no herd follows."""
    if not state.open_until:
        return replace(state, failures=0) if state.failures else state
    return replace(
        state,
        failures=0,
        open_until=0.0,
        probe_until=0.0,
        concurrency=min(state.concurrency, start_of(state, policy)),
        was_cut=0,
        next_request_at=max(state.next_request_at, now) if state.next_request_at else 0.0,
        next_token_at=max(state.next_token_at, now) if state.next_token_at else 0.0,
    )


def unheard(state: LaneState, now: float, *, age: float) -> LaneState:
    """Let another probe, where nothing was heard of the probe."""
    is_probe = state.probe_until > 0 and now - age >= state.opened_at
    return replace(state, probe_until=0.0) if is_probe else state


def probing(state: LaneState, now: float, policy: Policy) -> LaneState:
    """Note that a probe is under way."""
    return replace(state, probe_until=now + PROBE_LEASE * policy.breaker_seconds)
