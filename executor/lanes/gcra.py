"""GCRA (generic cell rate algorithm, virtual scheduling form). Pure; lane.lua has the same operations.

`next_request_at` and `next_token_at` are theoretical arrival times. A granted call moves its time forward
by the emission interval (60 / rpm seconds, or its tokens * 60 / tpm), and a call conforms once that time
has passed. The time lags the clock by at most the burst tolerance `BURST`, so in any T seconds at most rpm
/ 60 * (T + BURST) + 1 calls start. A new lane starts without credit: its state may just have been lost.
"""

import math
from dataclasses import replace

from executor.lanes.contract import AcquireRequest, LanePolicy, Settlement
from executor.lanes.state import LaneState
from providers.limits import Headroom

BURST = 0.25
"""The burst tolerance in seconds."""
MAX_START_DELAY = 2.0
"""Maximum seconds before the first call of a new lane."""
REFUND_WINDOW = 2.0
"""Seconds after which an unused permit is no longer refunded."""
REFUND_MARGIN = 1.0
"""Seconds after a decrease of the rate in which a settled permit may have been granted at the old rate."""
UNLIMITED = 1_000_000_000
LIMIT_CEILING = 1e12
SMOOTHING = 0.1


def valid_limit(number: float | None) -> float:
    """Return a limit within bounds, else 0."""
    return number if number is not None and 0 < number < LIMIT_CEILING else 0.0


def stricter(one: float, other: float) -> float:
    """Return the lower of two limits, of which 0 means unknown."""
    return min(one, other) if one and other else one or other


def effective_rpm(state: LaneState, policy: LanePolicy) -> float:
    """Return the requests per minute in force: the learnt rate only if none is configured or advertised."""
    return stricter(valid_limit(policy.rpm), state.advertised_rpm) or state.learnt_rpm


def effective_tpm(state: LaneState, policy: LanePolicy) -> float:
    """Return the tokens per minute in force."""
    return stricter(valid_limit(policy.tpm), state.advertised_tpm)


def reservation(state: LaneState, request: AcquireRequest) -> float:
    """Return the tokens to reserve for a call: none if tokens are not limited."""
    if not effective_tpm(state, request.policy):
        return 0.0
    return state.tokens_per_call or valid_limit(request.estimate)


def rescale(state: LaneState, now: float, policy: LanePolicy) -> LaneState:
    """Convert the arrival times to changed limits: the debt in requests stays, at the new rate.

    A stricter limit applies at once. A looser one gives no credit: an arrival time in the future moves
    nearer by the ratio of the rates, so there is neither a burst nor a long wait.
    """
    rpm, tpm = effective_rpm(state, policy), effective_tpm(state, policy)
    start = max(now, state.blocked_until)
    gap_at = state.next_gap_at
    if gap_at and policy.gap < state.gap:
        gap_at -= state.gap - policy.gap
    return replace(
        state,
        slowed_at=now if _decreased(state.rpm, rpm) or _decreased(state.tpm, tpm) else state.slowed_at,
        next_request_at=_rescaled(state.next_request_at, start, old=state.rpm, new=rpm),
        next_token_at=_rescaled(state.next_token_at, start, old=state.tpm, new=tpm),
        next_gap_at=gap_at,
        rpm=rpm,
        tpm=tpm,
        gap=policy.gap,
    )


def _decreased(old: float, new: float) -> bool:
    return new > 0 and (old == 0 or new < old)


def _rescaled(due: float, start: float, *, old: float, new: float) -> float:
    if due <= start or not old:
        return due
    if not new:
        return min(due, start + MAX_START_DELAY)
    return start + (due - start) * (old / new) if new > old else due


def start_clocks(state: LaneState, now: float, request: AcquireRequest) -> LaneState:
    """Set the arrival times of a new lane, or of a limit that has just become known, without credit."""
    state = rescale(state, now, request.policy)
    rpm, tpm, start = state.rpm, state.tpm, max(now, state.blocked_until)
    if rpm and not state.next_request_at:
        due = start + min(60 / rpm, MAX_START_DELAY)
        state = replace(state, next_request_at=due, paced_since=now)
    if tpm and not state.next_token_at:
        cost = reservation(state, request) * 60 / tpm
        state = replace(state, next_token_at=start + min(cost, MAX_START_DELAY), paced_since=now)
    if request.policy.gap > 0 and not state.next_gap_at:
        state = replace(state, next_gap_at=start + min(request.policy.gap, MAX_START_DELAY))
    return state


def capacity(due: float, now: float, share: float) -> int:
    """Count the conforming calls, each taking one emission interval (`share` seconds)."""
    if share <= 0:
        return UNLIMITED
    base = max(due, now - BURST)
    return math.floor((now - base) / share) + 1 if base <= now else 0


def advance(state: LaneState, now: float, *, granted: int, reserved: float, gap: float) -> LaneState:
    """Move the arrival times forward by what was granted."""
    if granted == 0:
        return state
    if state.rpm:
        state = _track_slack(state, now)
        due = max(state.next_request_at, now - BURST) + granted * (60 / state.rpm)
        state = replace(state, next_request_at=due, taken_at=now, taken=granted)
    if state.tpm:
        due = max(state.next_token_at, now - BURST) + granted * (reserved * 60 / state.tpm)
        state = replace(state, next_token_at=due)
    return replace(state, next_gap_at=now + gap) if gap > 0 else state


def _track_slack(state: LaneState, now: float) -> LaneState:
    slack = max(0.0, state.next_request_at - (now - BURST))
    if now - state.slack_since >= REFUND_WINDOW:
        return replace(state, slack=slack, slack_since=now)
    return replace(state, slack=min(state.slack, slack))


def refund(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    """Return the emission interval of an unused permit, without exceeding the bound on later grants.

    A permit of the last grant is refunded in full. Credit from an older one might have been capped at
    `BURST` since: it is refunded up to the smallest slack of all grants after it.
    """
    rpm = effective_rpm(state, policy)
    if not rpm:
        return state
    granted_at, share = now - settlement.age, 60 / max(rpm, state.rpm)
    if granted_at < state.slowed_at + REFUND_MARGIN:
        return state
    if state.taken > 0 and granted_at >= state.taken_at - 1e-6:
        return replace(state, next_request_at=state.next_request_at - share, taken=state.taken - 1)
    if granted_at < state.slack_since:
        return state
    worth = min(share, state.slack)
    return replace(state, next_request_at=state.next_request_at - worth, slack=state.slack - worth)


def charge_tokens(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    """Replace a token reservation by the tokens used; unknown usage keeps the reservation."""
    tokens, reserved = settlement.tokens, settlement.reserved
    if tokens is None or not 0 <= tokens < LIMIT_CEILING or not 0 <= reserved < LIMIT_CEILING:
        return state
    tpm = effective_tpm(state, policy)
    is_cheaper = now - settlement.age < state.slowed_at + REFUND_MARGIN
    if not tpm or (tokens < reserved and is_cheaper):
        return state
    due = max(state.next_token_at, now - BURST)
    return replace(state, next_token_at=due + (tokens - reserved) * 60 / tpm)


def learn_tokens_per_call(state: LaneState, tokens: float | None) -> LaneState:
    """Update the exponential moving average of tokens per call."""
    if tokens is None or not 0 < tokens < LIMIT_CEILING:
        return state
    mean = state.tokens_per_call
    return replace(state, tokens_per_call=mean + (tokens - mean) * SMOOTHING if mean else tokens)


def observe_limits(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    """Adopt the provider's rate limit headers, and wait if it has less left than is in flight.

    An arrival time never moves back because of headers.
    """
    limits, age = settlement.limits, settlement.age
    if limits is None:
        return state
    rpm = valid_limit(limits.requests.limit) or state.advertised_rpm
    tpm = valid_limit(limits.tokens.limit) or state.advertised_tpm
    state = replace(state, advertised_rpm=rpm, advertised_tpm=tpm)
    rpm, tpm, tokens = effective_rpm(state, policy), effective_tpm(state, policy), state.tokens_per_call
    due = _due(state, now, limits.requests, age=age, each=1.0, per_minute=rpm)
    token_due = _due(state, now, limits.tokens, age=age, each=tokens, per_minute=tpm)
    return replace(
        state,
        next_request_at=max(state.next_request_at, due),
        next_token_at=max(state.next_token_at, token_due),
    )


def _due(  # noqa: PLR0913 - one sum of many terms
    state: LaneState, now: float, left: Headroom, *, age: float, each: float, per_minute: float
) -> float:
    """Return when the provider's bucket will have capacity again; 0 if it has now.

    The calls in flight are compared with what has refilled since this call was sent. If GCRA has been
    pacing since then, no more than that refill plus the burst can be in flight.
    """
    if left.remaining is None or not per_minute:
        return 0.0
    refilled, outstanding = age * per_minute / 60, state.in_flight * each
    if 0 < state.paced_since <= now - age:
        outstanding = min(outstanding, (age + BURST) * per_minute / 60 + each)
    deficit = outstanding - refilled - left.remaining
    return now + deficit * 60 / per_minute if deficit > 0 else 0.0
