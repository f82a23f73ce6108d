"""Circuit breaker with a half-open probe. Pure; lane.lua has the same operations.

    closed      consecutive failures reach the limit     open
    closed      consecutive overloads reach four times   open, for 1 second at first
                the limit
    open        the open time has passed                 half open: one probe of all executors
    half open   the probe fails                          open
    half open   the probe meets an overload              open, for twice as long as before
    any         the provider responds otherwise          closed

A response to a call from before the breaker opened closes it, too: the provider is reachable. A
failure of such a call is not counted.
"""

from dataclasses import replace

from executor.lanes.aimd import initial_concurrency
from executor.lanes.contract import LanePolicy
from executor.lanes.state import LaneState

FIRST_CONTACT_PROBE = 5.0
"""Maximum seconds between two probes of a provider that has never responded."""
OVERLOAD_FACTOR = 4
"""Consecutive overloads that count as one failure: a provider with few successes still works."""
PROBE_LEASE = 2.0
"""Multiple of the open time after which a probe without an outcome expires and another may be sent."""


def status(state: LaneState, now: float) -> str:
    """Return closed, open, or half_open."""
    if not state.open_until:
        return "closed"
    return "open" if now < state.open_until else "half_open"


def on_failure(state: LaneState, now: float, *, age: float, policy: LanePolicy) -> LaneState:
    """Count a failure; open at the limit, and open again if it was the probe."""
    if now - age < state.opened_at:
        return state
    state = replace(state, failures=state.failures + 1)
    if not state.open_until and state.failures < policy.breaker_failures:
        return state
    return _opened(state, now, _open_seconds(state, policy))


def on_overload(state: LaneState, now: float, *, age: float, policy: LanePolicy) -> LaneState:
    """Count an overload; open only if calls have met nothing else, with exponential backoff of probes."""
    if now - age < state.opened_at:
        return state
    state, limit = replace(state, overloads=state.overloads + 1), OVERLOAD_FACTOR * policy.breaker_failures
    if not state.open_until and state.overloads < limit:
        return state
    doublings = min(max(0, state.overloads - limit), 10)
    return _opened(state, now, min(policy.breaker_seconds, 2.0**doublings))


def _opened(state: LaneState, now: float, seconds: float) -> LaneState:
    return replace(
        state,
        broken_at=state.broken_at if state.open_until else now,
        opened_at=now,
        open_until=now + seconds,
        probe_until=0.0,
    )


def _open_seconds(state: LaneState, policy: LanePolicy) -> float:
    if state.reached_at:
        return policy.breaker_seconds
    return min(policy.breaker_seconds, FIRST_CONTACT_PROBE)


def on_response(state: LaneState, now: float, policy: LanePolicy) -> LaneState:
    """Close; concurrency restarts from its initial value, so that no thundering herd follows."""
    state = replace(state, failures=0, overloads=0)
    if not state.open_until:
        return state
    return replace(
        state,
        open_until=0.0,
        probe_until=0.0,
        concurrency=min(state.concurrency, initial_concurrency(state, policy)),
        was_cut=0,
        next_request_at=max(state.next_request_at, now) if state.next_request_at else 0.0,
        next_token_at=max(state.next_token_at, now) if state.next_token_at else 0.0,
    )


def on_unknown_outcome(state: LaneState, now: float, *, age: float) -> LaneState:
    """Allow another probe if the outcome of the current one is unknown."""
    is_probe = state.probe_until > 0 and now - age >= state.opened_at
    return replace(state, probe_until=0.0) if is_probe else state


def on_probe(state: LaneState, now: float, policy: LanePolicy) -> LaneState:
    """Record that a probe is in flight."""
    return replace(state, probe_until=now + PROBE_LEASE * policy.breaker_seconds)
