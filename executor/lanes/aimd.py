"""AIMD (additive increase, multiplicative decrease) of calls in flight. Pure; the same as in lane.lua.

A success adds 1 / limit, so about one call per round trip, if at least half of the limit is in use; until
the first decrease it adds 1 (slow start). A decrease applies once for all calls already in flight.

    429 with Retry-After            a rate limit: the learnt rate is lowered; where there is none, or three
                                    such decreases did not help, the limit is halved and the lane blocked
    429 without, 529, 503           counted in a window of successes and rejects; while the success ratio is
                                    high they are noise, of which only the rejected call is retried later
    many of them in the window      429: the limit is halved; 529, 503: it falls by a fifth

Where neither configuration nor headers give a request rate, the lane learns one from the rate of successes:
a decrease after a 429 lowers it by 3 to 40 %, successes raise it by 5 % a second, near the last refused
rate by 0.1 %. A single 429 without Retry-After lowers it by 3 %, too. One that follows well below the rate
of successes does not depend on the rate: such replies are ignored for some seconds. An overload never
changes the learnt rate.
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
"""Seconds after which the counts of successes and rejects are halved."""
TOLERATED, TOLERATED_RATIO = 5.0, 1 / 3
"""Rejects in the window that are noise: five, and one for every three successes and calls in flight.

A reject is faster than an answer: without the calls in flight, it would count for more than its share."""
OVERLOAD_DECREASE = 0.8
DECREASE, MAX_DECREASE = 0.97, 0.7
GROWTH_INTERVAL, FAST_GROWTH, SLOW_GROWTH = 1.0, 1.05, 1.001
NEAR, FAR = 0.97, 1.1
"""Between these multiples of the last refused rate, growth is slow."""
FIRST_CUT, MAX_CUTS = 0.1, 3
"""A 429 with Retry-After lowers the learnt rate by a tenth, then by two and four tenths within it."""
WELL_BELOW, NOISY_SECONDS = 0.85, 10.0
"""A 429 below this multiple of the measured rate is noise, and so are those of so many seconds after it."""
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
    is_due = now >= max(grown_at + GROWTH_INTERVAL, state.cuts_until)
    if learnt and state.blocked_by == BlockedBy.RATE and is_due:
        learnt, grown_at = learnt * _growth(state), now
    return replace(state, concurrency=limit, learnt_rpm=learnt, grown_at=grown_at)


def _growth(state: LaneState) -> float:
    ceiling = state.refused_rpm
    return SLOW_GROWTH if NEAR * ceiling <= state.learnt_rpm <= FAR * ceiling else FAST_GROWTH


def count_success(state: LaneState, now: float) -> LaneState:
    """Count a success in the window."""
    state = _decayed(state, now)
    return replace(state, oks=state.oks + 1, answered=state.answered + 1)


def count_reject(state: LaneState, now: float) -> LaneState:
    """Count an overload, or a 429 without Retry-After, in the window."""
    state = _decayed(state, now)
    return replace(state, rejects=state.rejects + 1)


def _decayed(state: LaneState, now: float) -> LaneState:
    oks, rejects, since = state.oks, state.rejects, state.oks_since
    if now - since > 2 * SUCCESS_WINDOW:
        oks, rejects, since = 0.0, 0.0, max(now, state.blocked_until)
    elif now - since > SUCCESS_WINDOW:
        oks, rejects, since = oks / 2, rejects / 2, now - (now - since) / 2
    return replace(state, oks=oks, rejects=rejects, oks_since=since)


def is_noise(state: LaneState) -> bool:
    """Whether the success ratio of the window is high enough to ignore rejects."""
    return state.rejects <= TOLERATED + (state.oks + state.in_flight) * TOLERATED_RATIO


def decrease_rate(state: LaneState, now: float) -> LaneState:
    """Lower a learnt rate a little after a single 429, unless 429 replies do not depend on the rate."""
    learnt, refused = state.learnt_rpm, state.refused_rpm
    if not learnt or now < state.noisy_until:
        return state
    if learnt < WELL_BELOW * _measured_rpm(state, now):
        return replace(state, refused_rpm=0.0, noisy_until=now + NOISY_SECONDS)
    rate = max(MIN_RPM, DECREASE * learnt)
    return replace(state, learnt_rpm=rate, refused_rpm=refused or learnt, cut_at=now, grown_at=now)


def decrease_for_overload(state: LaneState, now: float) -> LaneState:
    """Apply the multiplicative decrease after many overloads; the window starts again."""
    concurrency = max(1.0, state.concurrency * OVERLOAD_DECREASE)
    state = replace(state, concurrency=concurrency, was_cut=1, cut_at=now)
    return restart_window(state, now)


def restart_window(state: LaneState, now: float) -> LaneState:
    """Start the window again, so that the next decrease has its own evidence.

    If nothing has succeeded in it, concurrency grows by slow start again.
    """
    was_cut = state.was_cut if state.oks > 0 else 0
    return replace(state, oks=0.0, rejects=0.0, oks_since=now, was_cut=was_cut)


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
    return _learn_rate(state, now, is_ceiling=is_ceiling) if state.oks > 0 else state


def can_lower_rate(state: LaneState, now: float, policy: LanePolicy) -> bool:
    """Whether a lower rate may answer a Retry-After: the lane learns its rate, and has not cut it often."""
    if stricter(valid_limit(policy.rpm), state.advertised_rpm) or state.oks <= 0:
        return False
    return now >= state.cuts_until or state.cuts < MAX_CUTS


def lower_rate(state: LaneState, now: float, *, until: float) -> LaneState:
    """Lower the learnt rate after a 429 with Retry-After; it does not grow before that time is over.

    The rate at which calls succeeded is the best estimate of the limit.
    """
    cuts = state.cuts if now < state.cuts_until else 0
    old, measured = state.learnt_rpm, _measured_rpm(state, now)
    state = replace(state, was_cut=1, cut_at=now, grown_at=now, cuts=cuts + 1, cuts_until=until)
    if not old:
        return replace(state, learnt_rpm=max(MIN_RPM, _first_rate(state, now)))
    rate = min((1 - FIRST_CUT * 2.0**cuts) * old, max(MAX_DECREASE * old, measured))
    refused = min(old, max((1 - FIRST_CUT) * old, measured))
    state = replace(state, learnt_rpm=max(MIN_RPM, rate))
    return state if cuts and state.refused_rpm else replace(state, refused_rpm=refused)


def _first_rate(state: LaneState, now: float) -> float:
    """Return the measured rate; in the first second the calls in flight count as successes, too."""
    elapsed = max(0.0, now - state.oks_since)
    return (state.oks + state.in_flight * max(0.0, 1.0 - elapsed)) / max(elapsed, 1.0) * 60


def _measured_rpm(state: LaneState, now: float) -> float:
    return state.oks / max(now - state.oks_since, 1.0) * 60


def _learn_rate(state: LaneState, now: float, *, is_ceiling: bool) -> LaneState:
    old, measured = state.learnt_rpm, _measured_rpm(state, now)
    if not old:  # the rate before the first 429 is no ceiling: it includes the provider's burst
        return replace(state, learnt_rpm=max(MIN_RPM, measured), grown_at=now)
    rate = max(MIN_RPM, MAX_DECREASE * old, min(DECREASE * old, measured))
    return replace(state, learnt_rpm=rate, refused_rpm=rate if is_ceiling else 0.0, grown_at=now)
