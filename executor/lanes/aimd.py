"""AIMD (additive increase, multiplicative decrease) of calls in flight. Pure; the same as in lane.lua.

A success adds 1 / limit, so about one call per round trip, if at least half of the limit is in use; until
the first 429 it adds 1 (slow start). A 429 halves the limit, once for all calls already in flight.

Where neither configuration nor headers give a request rate, the lane learns one from the rate of successes:
a 429 lowers it by 3 to 30 %, successes raise it by 5 % a second, near the last refused rate by 0.1 %.
"""

from dataclasses import replace

from executor.lanes.contract import BlockedBy, LanePolicy
from executor.lanes.gcra import effective_tpm, stricter, valid_limit
from executor.lanes.state import LaneState

START_KNOWN, START_UNKNOWN = 32.0, 8.0
"""Initial calls in flight: where a rate is known, GCRA bounds what a high start can do."""
START_UNMEASURED = 4
"""Calls in flight under a token limit until the first response gives the tokens per call."""
MAX_CONCURRENCY = 10_000.0
MIN_STEP = 0.05
"""The smallest additive step: with 1 / limit alone, long calls would make growth too slow."""
SUCCESS_WINDOW = 10.0
"""Seconds after which the count of successes is halved."""
DECREASE, MAX_DECREASE = 0.97, 0.7
GROWTH_INTERVAL, FAST_GROWTH, SLOW_GROWTH = 1.0, 1.05, 1.001
NEAR, FAR = 0.99, 1.1
"""Between these multiples of the last refused rate, growth is slow: each 429 costs a pause."""
MIN_DECREASE_INTERVAL = 5.0
"""Seconds since the previous decrease from which the measured rate is a usable ceiling."""
MIN_RPM = 1.0


def start(state: LaneState, policy: LanePolicy) -> LaneState:
    """Set the initial concurrency of a new lane; raise it once a rate is known and no 429 has occurred."""
    initial = initial_concurrency(state, policy)
    if state.concurrency == 0 or (not state.cut_at and state.concurrency < initial):
        return replace(state, concurrency=initial)
    return state


def initial_concurrency(state: LaneState, policy: LanePolicy) -> float:
    """Return the concurrency that a lane starts with."""
    is_known = valid_limit(policy.rpm) or state.advertised_rpm or effective_tpm(state, policy)
    return START_KNOWN if is_known else START_UNKNOWN


def increase(state: LaneState, now: float, policy: LanePolicy) -> LaneState:
    """Apply the additive increase after a success, if the current limit is in use."""
    limit = state.concurrency
    if state.in_flight >= limit / 2:
        ceiling = min(MAX_CONCURRENCY, policy.max_concurrency or MAX_CONCURRENCY)
        step = max(1 / limit, MIN_STEP) if state.was_cut else 1.0
        limit = max(limit, min(ceiling, limit + step))
    learnt, grown_at = state.learnt_rpm, state.grown_at
    if learnt and state.blocked_by == BlockedBy.RATE and now - grown_at >= GROWTH_INTERVAL:
        learnt, grown_at = learnt * _growth(state), now
    return replace(state, concurrency=limit, learnt_rpm=learnt, grown_at=grown_at)


def _growth(state: LaneState) -> float:
    ceiling = state.refused_rpm
    return SLOW_GROWTH if NEAR * ceiling <= state.learnt_rpm <= FAR * ceiling else FAST_GROWTH


def count_success(state: LaneState, now: float) -> LaneState:
    """Count a success for the measured rate; the count decays by halves."""
    oks, since = state.oks, state.oks_since
    if now - since > 2 * SUCCESS_WINDOW:
        oks, since = 0.0, now
    elif now - since > SUCCESS_WINDOW:
        oks, since = oks / 2, now - (now - since) / 2
    return replace(state, oks=oks + 1, oks_since=since, answered=state.answered + 1)


def decrease(state: LaneState, now: float, policy: LanePolicy) -> LaneState:
    """Apply the multiplicative decrease after a 429, and learn a rate where none is known."""
    is_ceiling = now - state.cut_at >= MIN_DECREASE_INTERVAL
    state = replace(
        state,
        concurrency=max(1.0, state.concurrency / 2),
        was_cut=1,
        cut_at=now,
        refusals=state.refusals + 1,
    )
    if stricter(valid_limit(policy.rpm), state.advertised_rpm):
        return state
    measured = state.oks / max(now - state.oks_since, 1.0) * 60
    return _learn_rate(state, now, measured, is_ceiling=is_ceiling) if state.oks > 0 else state


def _learn_rate(state: LaneState, now: float, measured: float, *, is_ceiling: bool) -> LaneState:
    old = state.learnt_rpm
    if not old:  # the rate before the first 429 is no ceiling: it includes the provider's burst
        return replace(state, learnt_rpm=max(MIN_RPM, measured), grown_at=now)
    rate = max(MIN_RPM, MAX_DECREASE * old, min(DECREASE * old, measured))
    return replace(state, learnt_rpm=rate, refused_rpm=rate if is_ceiling else 0.0, grown_at=now)
