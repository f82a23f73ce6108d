"""A lane's rules: what settlements teach it, and what it grants. Pure; lane.lua does the same to the bit.

Whoever changes one changes the other: a test drives both through the same random traces and compares every
number. So nothing here rounds, and sums are taken in the same order there.
"""

from dataclasses import replace

from executor.lanes import breaker, growth, limits, pace
from executor.lanes.contract import Ask, Grant, Outcome, Policy, Settlement, Why
from executor.lanes.pace import NO_END
from executor.lanes.state import Held, LaneState

LEASE = 60.0
"""Seconds for which an executor is believed to hold what it said, without its asking again."""
LONGEST_BLOCK = 86_400.0
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
SHORTEST_WAIT, GATHERING, LOOK_AGAIN, LONGEST_WAIT = 0.02, 0.1, 0.05, 1.0
STALE = 5.0

ANSWERS = frozenset({Outcome.OK, Outcome.RATE_LIMITED, Outcome.REFUSED, Outcome.FAILED})
"""What shows that the other side is there: something received the call."""

Rooms = list[tuple[Why, int]]


def answer(state: LaneState, now: float, ask: Ask) -> tuple[LaneState, Grant]:
    """Answer one request: renew limits, settle what came of earlier permits, grant new ones."""
    state = limits.declared(state, now, ask)
    ask = replace(ask, policy=limits.strictest(state, ask.policy))
    state = pace.adjusted(state, now, ask.policy)
    for settlement in ask.settlements:
        state = settle(state, now, ask.policy, settlement)
    return take(state, now, ask)


def settle(state: LaneState, now: float, policy: Policy, settlement: Settlement) -> LaneState:
    """Learn what came of one permit."""
    asked = max(0.0, settlement.retry_after or 0.0)  # asking for nothing is not asking
    settlement = replace(settlement, age=max(0.0, settlement.age), retry_after=asked)
    state = pace.told(state, now, policy, settlement)
    state = growth.started(state, policy)
    if settlement.outcome in ANSWERS:
        state = replace(state, reached_at=now)
    state = _outcome(state, now, policy, settlement)
    if settlement.retry_after:
        state = _blocked(state, now, now + min(settlement.retry_after, LONGEST_BLOCK))
    return state


def _outcome(state: LaneState, now: float, policy: Policy, settlement: Settlement) -> LaneState:
    match settlement.outcome:
        case Outcome.OK:
            return _went_well(state, now, policy, settlement)
        case Outcome.RATE_LIMITED:
            state = pace.charged(breaker.answered(state, now, policy), now, policy, settlement)
            return _refused_as_too_many(state, now, policy, settlement)
        case Outcome.REFUSED:
            return pace.charged(breaker.answered(state, now, policy), now, policy, settlement)
        case Outcome.FAILED | Outcome.UNREACHED:
            state = pace.charged(state, now, policy, settlement)
            return breaker.failed(state, now, age=settlement.age, policy=policy)
        case Outcome.ABANDONED:
            state = pace.charged(state, now, policy, settlement)
            return breaker.unheard(state, now, age=settlement.age)
        case Outcome.UNUSED:
            nothing = replace(settlement, tokens=0.0)
            state = pace.charged(state, now, policy, nothing)
            state = pace.refunded(state, now, policy, settlement)
            return breaker.unheard(state, now, age=settlement.age)
        case _:
            raise ValueError(f"no outcome: {settlement.outcome!r}")


def _went_well(state: LaneState, now: float, policy: Policy, settlement: Settlement) -> LaneState:
    state = breaker.answered(state, now, policy)
    state = pace.weighed(pace.charged(state, now, policy, settlement), settlement.tokens)
    state = growth.raised(growth.counted(state, now), now, policy)
    return replace(state, refusals=0) if now - settlement.age >= state.cut_at else state


def _refused_as_too_many(state: LaneState, now: float, policy: Policy, settlement: Settlement) -> LaneState:
    state = replace(state, rate_limited=state.rate_limited + 1)
    if now - settlement.age < state.cut_at:
        return state
    state = growth.cut(state, now, policy)
    if settlement.retry_after:
        return state
    pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2.0 ** min(state.refusals - 1, 10))
    return _blocked(state, now, now + pause)


def _blocked(state: LaneState, now: float, until: float) -> LaneState:
    """Wait, and save up nothing meanwhile."""
    if until <= max(now, state.blocked_until):
        return state
    return replace(
        state,
        blocked_at=state.blocked_at if now < state.blocked_until else now,
        blocked_until=until,
        next_request_at=max(state.next_request_at, until) if state.next_request_at else 0.0,
        next_token_at=max(state.next_token_at, until) if state.next_token_at else 0.0,
    )


def take(state: LaneState, now: float, ask: Ask) -> tuple[LaneState, Grant]:
    """Grant what may start now, and say what keeps the rest back, and for how long."""
    wanted, reserved = max(0, ask.wanted), pace.reserved_for(state, ask)
    state = growth.started(_believed(state, now, ask), ask.policy)
    state = pace.opened(state, now, ask)
    why, least = _narrowest(_rooms(state, now, ask, reserved))
    granted = max(0, min(wanted, least))
    if granted and state.open_until:
        state = breaker.probing(state, now, ask.policy)
    state = pace.spent(state, now, granted=granted, reserved=reserved, gap=ask.policy.gap)
    state = _handed(state, now, ask, granted)
    if granted == wanted:
        cleared = replace(state, why="", since=0.0, short_until=0.0) if wanted else state
        return cleared, Grant(granted, reserved)
    ready_in = _ready_in(state, now, why, reserved)
    return _short(state, now, why, ready_in), Grant(granted, reserved, why, ready_in)


def _believed(state: LaneState, now: float, ask: Ask) -> LaneState:
    """Take an executor at its word about what it holds, and forget those that have gone silent."""
    held = {name: each for name, each in state.held.items() if each.until > now and name != ask.executor}
    if ask.held > 0:
        held[ask.executor] = Held(ask.held, now + LEASE)
    return replace(state, held=held)


def _handed(state: LaneState, now: float, ask: Ask, granted: int) -> LaneState:
    if granted == 0:
        return state
    held = {**state.held, ask.executor: Held(max(0, ask.held) + granted, now + LEASE)}
    return replace(state, held=held, granted=state.granted + granted)


def _rooms(state: LaneState, now: float, ask: Ask, reserved: float) -> Rooms:
    """Say how many calls each of a lane's limits would let through."""
    policy = ask.policy
    is_probe = state.open_until > 0
    open_or_probed = now < state.open_until or now < state.probe_until
    share = 60 / state.rpm if state.rpm else 0.0
    cost = reserved * 60 / state.tpm if state.tpm else 0.0
    return [
        (Why.RETRY_AFTER, 0 if now < state.blocked_until else NO_END),
        (Why.BREAKER, (0 if open_or_probed else 1) if is_probe else NO_END),
        (Why.RATE, pace.room(state.next_request_at, now, share)),
        (Why.TOKENS, pace.room(state.next_token_at, now, cost)),
        (Why.GAP, (1 if now >= state.next_gap_at else 0) if policy.gap > 0 else NO_END),
        (Why.CONCURRENCY, _places(state, policy, is_probe=is_probe)),
    ]


def _places(state: LaneState, policy: Policy, *, is_probe: bool) -> int:
    """Count the calls that may be added to those in flight; a probe heeds only what was configured."""
    most = policy.max_concurrency or NO_END
    if not is_probe and policy.is_adaptive:
        most = min(most, int(state.concurrency))
        if state.tpm and not state.tokens_per_call and not state.answered:
            most = min(most, growth.START_UNWEIGHED)
    return most - state.in_flight


def _narrowest(rooms: Rooms) -> tuple[Why, int]:
    return min(rooms, key=lambda each: each[1])  # of equals the first


def _ready_in(state: LaneState, now: float, why: Why, reserved: float) -> float:
    """Say when asking again is worth it; many calls a second are better granted a few at a time."""
    match why:
        case Why.RATE:
            return max(state.next_request_at - now, _gathered(60 / state.rpm))
        case Why.TOKENS:
            return max(state.next_token_at - now, _gathered(reserved * 60 / state.tpm))
        case Why.GAP:
            return max(state.next_gap_at - now, SHORTEST_WAIT)
        case Why.CONCURRENCY:
            return LOOK_AGAIN
        case Why.RETRY_AFTER:
            return min(LONGEST_WAIT, max(state.blocked_until - now, SHORTEST_WAIT))
        case Why.BREAKER:
            left = max(state.open_until, state.probe_until) - now
            return min(LONGEST_WAIT, max(left, SHORTEST_WAIT))
        case _:
            raise ValueError(f"no reason: {why!r}")


def _gathered(share: float) -> float:
    return min(GATHERING, max(SHORTEST_WAIT, 5 * share))


def _short(state: LaneState, now: float, why: Why, ready_in: float) -> LaneState:
    is_same = state.why == why and now <= state.short_until
    since = state.since if is_same else now
    return replace(state, why=str(why), since=since, short_until=now + ready_in + STALE)
