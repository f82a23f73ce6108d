"""Requests, tokens and gaps in virtual time. Pure; lane.lua does the same, operation by operation.

Each call moves a clock of its own forward by its share of a minute, and may start once that clock is not
ahead of the true one. The clock lags by `BURST` at most, so in any T seconds at most rpm / 60 * (T + BURST)
+ 1 calls start. A new lane's clock begins one share ahead: it may be one that was lost a moment ago.
"""

import math
from dataclasses import replace

from executor.lanes.contract import Ask, Policy, Settlement
from executor.lanes.state import LaneState
from providers.limits import Headroom

BURST = 0.25
"""Seconds of credit that a lane may save up."""
LONGEST_START = 2.0
"""Seconds that a new lane waits at most for its first call."""
EPOCH = 2.0
"""Seconds after which a permit that comes back unused is worth nothing any more."""
REFUND_MARGIN = 1.0
"""Seconds after a rate fell in which a permit that comes back may still have been granted before that."""
NO_END = 1_000_000_000
MOST = 1e12
SMOOTHING = 0.1


def known(number: float | None) -> float:
    """Take a limit that makes sense, else 0."""
    return number if number is not None and 0 < number < MOST else 0.0


def least(one: float, other: float) -> float:
    """Take the lower of two limits, of which either may be unknown."""
    return min(one, other) if one and other else one or other


def rpm_of(state: LaneState, policy: Policy) -> float:
    """Say the requests a minute to keep to; what was learnt counts only where nobody said."""
    return least(known(policy.rpm), state.told_rpm) or state.learnt_rpm


def tpm_of(state: LaneState, policy: Policy) -> float:
    """Say the tokens a minute to keep to."""
    return least(known(policy.tpm), state.told_tpm)


def reserved_for(state: LaneState, ask: Ask) -> float:
    """Say what to set aside for a call: nothing, where tokens are not limited."""
    if not tpm_of(state, ask.policy):
        return 0.0
    return state.tokens_per_call or known(ask.estimate)


def adjusted(state: LaneState, now: float, policy: Policy) -> LaneState:
    """Convert the clocks where limits have changed: what is owed stays owed, at the new rate.

    A stricter limit binds from its first moment on. A looser one gives back no credit: a clock that is
    ahead of the time comes nearer by the ratio of the rates, so no burst follows and no long wait remains.
    """
    rpm, tpm, start = rpm_of(state, policy), tpm_of(state, policy), max(now, state.blocked_until)
    gap_at = state.next_gap_at
    if gap_at and policy.gap < state.gap:
        gap_at -= state.gap - policy.gap
    return replace(
        state,
        slowed_at=now if _fell(state.rpm, rpm) or _fell(state.tpm, tpm) else state.slowed_at,
        next_request_at=_converted(state.next_request_at, start, old=state.rpm, new=rpm),
        next_token_at=_converted(state.next_token_at, start, old=state.tpm, new=tpm),
        next_gap_at=gap_at,
        rpm=rpm,
        tpm=tpm,
        gap=policy.gap,
    )


def _fell(old: float, new: float) -> bool:
    return new > 0 and (old == 0 or new < old)


def _converted(due: float, start: float, *, old: float, new: float) -> float:
    if due <= start or not old:
        return due
    if not new:
        return min(due, start + LONGEST_START)
    return start + (due - start) * (old / new) if new > old else due


def opened(state: LaneState, now: float, ask: Ask) -> LaneState:
    """Set the clocks of a new lane, or of a limit that has just become known: empty, not full."""
    state = adjusted(state, now, ask.policy)
    rpm, tpm, start = state.rpm, state.tpm, max(now, state.blocked_until)
    if rpm and not state.next_request_at:
        due = start + min(60 / rpm, LONGEST_START)
        state = replace(state, next_request_at=due, paced_since=now)
    if tpm and not state.next_token_at:
        cost = reserved_for(state, ask) * 60 / tpm
        state = replace(state, next_token_at=start + min(cost, LONGEST_START), paced_since=now)
    if ask.policy.gap > 0 and not state.next_gap_at:
        state = replace(state, next_gap_at=start + min(ask.policy.gap, LONGEST_START))
    return state


def room(due: float, now: float, share: float) -> int:
    """Count the calls that may start now, each moving a clock by its share."""
    if share <= 0:
        return NO_END
    base = max(due, now - BURST)
    return math.floor((now - base) / share) + 1 if base <= now else 0


def spent(state: LaneState, now: float, *, granted: int, reserved: float, gap: float) -> LaneState:
    """Move the clocks by what was granted."""
    if granted == 0:
        return state
    if state.rpm:
        state = _with_slack(state, now)
        due = max(state.next_request_at, now - BURST) + granted * (60 / state.rpm)
        state = replace(state, next_request_at=due, taken_at=now, taken=granted)
    if state.tpm:
        due = max(state.next_token_at, now - BURST) + granted * (reserved * 60 / state.tpm)
        state = replace(state, next_token_at=due)
    return replace(state, next_gap_at=now + gap) if gap > 0 else state


def _with_slack(state: LaneState, now: float) -> LaneState:
    slack = max(0.0, state.next_request_at - (now - BURST))
    if now - state.slack_since >= EPOCH:
        return replace(state, slack=slack, slack_since=now)
    return replace(state, slack=min(state.slack, slack))


def refunded(state: LaneState, now: float, policy: Policy, settlement: Settlement) -> LaneState:
    """Give the share of a call back that was not made, as far as it changes nothing that was granted since.

    A permit of the last grant comes back whole. An older one would have left credit behind that had been
    cut off at `BURST` since: it is worth the slack that there was at every grant after it.
    """
    rpm = rpm_of(state, policy)
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


def charged(state: LaneState, now: float, policy: Policy, settlement: Settlement) -> LaneState:
    """Correct a reservation by what was used; what is not known stays as it was reserved."""
    tokens, reserved = settlement.tokens, settlement.reserved
    if tokens is None or not 0 <= tokens < MOST or not 0 <= reserved < MOST:
        return state
    tpm = tpm_of(state, policy)
    is_cheaper = now - settlement.age < state.slowed_at + REFUND_MARGIN
    if not tpm or (tokens < reserved and is_cheaper):
        return state
    due = max(state.next_token_at, now - BURST)
    return replace(state, next_token_at=due + (tokens - reserved) * 60 / tpm)


def weighed(state: LaneState, tokens: float | None) -> LaneState:
    """Learn what a call takes."""
    if tokens is None or not 0 < tokens < MOST:
        return state
    mean = state.tokens_per_call
    return replace(state, tokens_per_call=mean + (tokens - mean) * SMOOTHING if mean else tokens)


def told(state: LaneState, now: float, policy: Policy, settlement: Settlement) -> LaneState:
    """Believe the other side about its limits, and wait where it has less left than is on its way.

    A clock is never moved back because of that.
    """
    limits, age = settlement.limits, settlement.age
    if limits is None:
        return state
    rpm = known(limits.requests.limit) or state.told_rpm
    tpm = known(limits.tokens.limit) or state.told_tpm
    state = replace(state, told_rpm=rpm, told_tpm=tpm)
    due = _due(state, now, limits.requests, age=age, each=1.0, per_minute=rpm_of(state, policy))
    token_due = _due(
        state, now, limits.tokens, age=age, each=state.tokens_per_call, per_minute=tpm_of(state, policy)
    )
    return replace(
        state,
        next_request_at=max(state.next_request_at, due),
        next_token_at=max(state.next_token_at, token_due),
    )


def _due(  # noqa: PLR0913 - one sum of many terms
    state: LaneState, now: float, left: Headroom, *, age: float, each: float, per_minute: float
) -> float:
    """Say when there will be room again.

    What is on its way is weighed against what came back to the other side's bucket since this call was
    sent; of a lane that has been pacing since then no more can be on its way than that, and its burst.
    """
    if left.remaining is None or not per_minute:
        return 0.0
    come_back, on_its_way = age * per_minute / 60, state.in_flight * each
    if 0 < state.paced_since <= now - age:
        on_its_way = min(on_its_way, (age + BURST) * per_minute / 60 + each)
    deficit = on_its_way - come_back - left.remaining
    return now + deficit * 60 / per_minute if deficit > 0 else 0.0
