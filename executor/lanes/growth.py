"""How much is tried: calls in flight, and calls a minute where nobody says a limit. Pure; see lane.lua.

Additive increase, multiplicative decrease: a 429 halves, once for all calls that were already under way,
and every good answer adds a little, if what there is was used.
"""

from dataclasses import replace

from executor.lanes.contract import Policy, Why
from executor.lanes.pace import known, least, tpm_of
from executor.lanes.state import LaneState

START_KNOWN, START_UNKNOWN = 32.0, 8.0
"""Calls in flight at first: pacing guards a lane whose limits are known."""
START_UNWEIGHED = 4
"""Calls in flight, under a limit of tokens, until the first has told what calls take."""
HIGHEST = 10_000.0
SMALLEST_STEP = 0.05
"""What a good answer adds after a cut, where one more a round is less: rounds of slow calls are long."""
FORGET_AFTER = 10.0
CUT, DEEPEST_CUT = 0.97, 0.7
GROW_EVERY, FAST, SLOW = 1.0, 1.05, 1.001
NEAR, FAR = 0.99, 1.1
"""Around what went through at the last refusal little more is tried at a time: a refusal costs a pause."""
SURE_AFTER = 5.0
"""Seconds since the cut before, without which what went through says little about what would."""
LOWEST_RPM = 1.0


def started(state: LaneState, policy: Policy) -> LaneState:
    """Give a new lane its first limit of calls in flight, and a better one once limits are known."""
    start = start_of(state, policy)
    if state.concurrency == 0 or (not state.cut_at and state.concurrency < start):
        return replace(state, concurrency=start)
    return state


def start_of(state: LaneState, policy: Policy) -> float:
    """Say how many calls in flight a lane begins with."""
    is_known = known(policy.rpm) or state.told_rpm or tpm_of(state, policy)
    return START_KNOWN if is_known else START_UNKNOWN


def raised(state: LaneState, now: float, policy: Policy) -> LaneState:
    """Try a little more after a good answer, if what there is was used."""
    limit = state.concurrency
    if state.in_flight >= limit / 2:
        most = min(HIGHEST, policy.max_concurrency or HIGHEST)
        step = max(1 / limit, SMALLEST_STEP) if state.was_cut else 1.0
        limit = max(limit, min(most, limit + step))
    learnt, grown_at = state.learnt_rpm, state.grown_at
    if learnt and state.why == Why.RATE and now - grown_at >= GROW_EVERY:
        learnt, grown_at = learnt * _growth(state), now
    return replace(state, concurrency=limit, learnt_rpm=learnt, grown_at=grown_at)


def _growth(state: LaneState) -> float:
    ceiling = state.refused_rpm
    return SLOW if NEAR * ceiling <= state.learnt_rpm <= FAR * ceiling else FAST


def counted(state: LaneState, now: float) -> LaneState:
    """Count a good answer towards the rate that goes through; old ones are forgotten by halves."""
    oks, since = state.oks, state.oks_since
    if now - since > 2 * FORGET_AFTER:
        oks, since = 0.0, now
    elif now - since > FORGET_AFTER:
        oks, since = oks / 2, now - (now - since) / 2
    return replace(state, oks=oks + 1, oks_since=since, answered=state.answered + 1)


def cut(state: LaneState, now: float, policy: Policy) -> LaneState:
    """Halve what may be in flight, and learn a rate where nobody says one."""
    is_sure = now - state.cut_at >= SURE_AFTER
    state = replace(
        state,
        concurrency=max(1.0, state.concurrency / 2),
        was_cut=1,
        cut_at=now,
        refusals=state.refusals + 1,
    )
    if least(known(policy.rpm), state.told_rpm):
        return state
    measured = state.oks / max(now - state.oks_since, 1.0) * 60
    return _learnt(state, now, measured, is_sure=is_sure) if state.oks > 0 else state


def _learnt(state: LaneState, now: float, measured: float, *, is_sure: bool) -> LaneState:
    old = state.learnt_rpm
    if not old:  # what went through until the first refusal tells little: much of it was a burst
        return replace(state, learnt_rpm=max(LOWEST_RPM, measured), grown_at=now)
    rate = max(LOWEST_RPM, DEEPEST_CUT * old, min(CUT * old, measured))
    return replace(state, learnt_rpm=rate, refused_rpm=rate if is_sure else 0.0, grown_at=now)
