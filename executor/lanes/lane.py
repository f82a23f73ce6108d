"""The lane algorithm: apply settlements, then grant permits. Pure; lane.lua computes the same, bit for bit.

A lane combines GCRA pacing of requests and tokens (gcra.py), AIMD concurrency (aimd.py), a circuit breaker
with a half-open probe (breaker.py), a minimum gap, and Retry-After. A change here needs the same change in
lane.lua: a property test drives both through random traces and compares every number, so nothing is rounded
and sums are evaluated in the same order.
"""

from dataclasses import replace

from executor.lanes import aimd, breaker, gcra, limits
from executor.lanes.contract import AcquireRequest, BlockedBy, CallOutcome, Grant, LanePolicy, Settlement
from executor.lanes.gcra import UNLIMITED
from executor.lanes.state import LaneState, PermitLease

LEASE = 60.0
"""Seconds after which the permits of an executor expire unless it sends another request."""
MAX_BLOCK = 86_400.0
FIRST_PAUSE, MAX_PAUSE = 1.0, 30.0
MIN_WAIT, BATCHING_WAIT, CONCURRENCY_POLL, MAX_WAIT = 0.02, 0.1, 0.05, 1.0
STALE = 5.0

REACHED = frozenset(CallOutcome) - {CallOutcome.UNREACHED, CallOutcome.ABANDONED, CallOutcome.UNUSED}
"""Outcomes that prove that the provider received the call."""
OWN_RETRY_AFTER = frozenset({CallOutcome.RATE_LIMITED, CallOutcome.OVERLOADED})
"""Outcomes whose Retry-After need not block the lane."""

Capacities = list[tuple[BlockedBy, int]]


def process(state: LaneState, now: float, request: AcquireRequest) -> tuple[LaneState, Grant]:
    """Process one request: renew declared limits, settle earlier permits, grant new ones."""
    state = limits.declare(state, now, request)
    request = replace(request, policy=limits.strictest(state, request.policy))
    state = gcra.rescale(state, now, request.policy)
    for settlement in request.settlements:
        state = settle(state, now, request.policy, settlement)
    return grant_permits(state, now, request)


def settle(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    """Apply the outcome of one permit."""
    retry_after = max(0.0, settlement.retry_after or 0.0)
    settlement = replace(settlement, age=max(0.0, settlement.age), retry_after=retry_after)
    state = gcra.observe_limits(state, now, policy, settlement)
    state = aimd.start(state, policy)
    if settlement.outcome in REACHED:
        state = replace(state, reached_at=now)
    state = _apply_outcome(state, now, policy, settlement)
    if settlement.retry_after and settlement.outcome not in OWN_RETRY_AFTER:
        state = _blocked(state, now, now + min(settlement.retry_after, MAX_BLOCK))
    return state


def _apply_outcome(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    match settlement.outcome:
        case CallOutcome.OK:
            return _succeeded(state, now, policy, settlement)
        case CallOutcome.RATE_LIMITED:
            state = gcra.charge_tokens(breaker.on_response(state, now, policy), now, policy, settlement)
            return _rate_limited(state, now, policy, settlement)
        case CallOutcome.OVERLOADED:
            return _overloaded(gcra.charge_tokens(state, now, policy, settlement), now, policy, settlement)
        case CallOutcome.REFUSED:
            return gcra.charge_tokens(breaker.on_response(state, now, policy), now, policy, settlement)
        case CallOutcome.FAILED | CallOutcome.UNREACHED:
            state = gcra.charge_tokens(state, now, policy, settlement)
            return breaker.on_failure(state, now, age=settlement.age, policy=policy)
        case CallOutcome.ABANDONED:
            state = gcra.charge_tokens(state, now, policy, settlement)
            return breaker.on_unknown_outcome(state, now, age=settlement.age)
        case CallOutcome.UNUSED:
            no_tokens = replace(settlement, tokens=0.0)
            state = gcra.charge_tokens(state, now, policy, no_tokens)
            state = gcra.refund(state, now, policy, settlement)
            return breaker.on_unknown_outcome(state, now, age=settlement.age)
        case _:
            raise ValueError(f"unknown outcome: {settlement.outcome!r}")


def _succeeded(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    state = breaker.on_response(state, now, policy)
    state = gcra.learn_tokens_per_call(
        gcra.charge_tokens(state, now, policy, settlement), settlement.tokens
    )
    state = aimd.increase(aimd.count_success(state, now), now, policy)
    return replace(state, refusals=0) if now - settlement.age >= state.cut_at else state


def _rate_limited(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    state = replace(state, rate_limited=state.rate_limited + 1)
    if settlement.retry_after:
        return _retry_after(state, now, policy, settlement)
    if now - settlement.age < state.cut_at:
        return state
    state = aimd.count_reject(state, now)
    if aimd.is_noise(state):
        return aimd.decrease_rate(state, now)
    state = aimd.restart_window(aimd.decrease(state, now, policy), now)
    pause = min(MAX_PAUSE, FIRST_PAUSE * 2.0 ** min(state.refusals - 1, 10))
    return _blocked(state, now, now + pause)


def _retry_after(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    """Lower the learnt rate, so that only the rejected call waits; else block the lane.

    Calls that were granted at the old rate, or in the burst after it, are answered by the same decrease.
    """
    until, granted_at = now + min(settlement.retry_after or 0.0, MAX_BLOCK), now - settlement.age
    if now < state.cuts_until and granted_at < state.cut_at + gcra.BURST:
        return state
    if granted_at < state.cut_at:
        return _blocked(state, now, until)
    if aimd.can_lower_rate(state, now, policy):
        return aimd.lower_rate(state, now, until=until)
    return _blocked(aimd.decrease(state, now, policy), now, until)


def _overloaded(state: LaneState, now: float, policy: LanePolicy, settlement: Settlement) -> LaneState:
    state = breaker.on_overload(state, now, age=settlement.age, policy=policy)
    if now - settlement.age < state.cut_at:
        return state
    state = aimd.count_reject(state, now)
    return state if aimd.is_noise(state) else aimd.decrease_for_overload(state, now)


def _blocked(state: LaneState, now: float, until: float) -> LaneState:
    """Block until a time, without accumulating burst credit until then."""
    if until <= max(now, state.blocked_until):
        return state
    return replace(
        state,
        blocked_at=state.blocked_at if now < state.blocked_until else now,
        blocked_until=until,
        oks_since=state.oks_since + (until - max(now, state.blocked_until)),
        next_request_at=max(state.next_request_at, until) if state.next_request_at else 0.0,
        next_token_at=max(state.next_token_at, until) if state.next_token_at else 0.0,
    )


def grant_permits(state: LaneState, now: float, request: AcquireRequest) -> tuple[LaneState, Grant]:
    """Grant what all limits allow now; for the rest return the tightest limit and the time to retry."""
    wanted, reserved = max(0, request.wanted), gcra.reservation(state, request)
    state = aimd.start(_renew_lease(state, now, request), request.policy)
    state = gcra.start_clocks(state, now, request)
    blocked_by, capacity = _tightest(_capacities(state, now, request, reserved))
    granted = max(0, min(wanted, capacity))
    if granted and state.open_until:
        state = breaker.on_probe(state, now, request.policy)
    state = gcra.advance(state, now, granted=granted, reserved=reserved, gap=request.policy.gap)
    state = _record_grant(state, now, request, granted)
    if granted == wanted:
        cleared = replace(state, blocked_by="", since=0.0, short_until=0.0) if wanted else state
        return cleared, Grant(granted, reserved)
    ready_in = _ready_in(state, now, blocked_by, reserved)
    return _throttled(state, now, blocked_by, ready_in), Grant(granted, reserved, blocked_by, ready_in)


def _renew_lease(state: LaneState, now: float, request: AcquireRequest) -> LaneState:
    """Replace the executor's lease by what it holds now, and drop expired leases."""
    held = {
        name: each for name, each in state.held.items() if each.until > now and name != request.executor
    }
    if request.held > 0:
        held[request.executor] = PermitLease(request.held, now + LEASE)
    return replace(state, held=held)


def _record_grant(state: LaneState, now: float, request: AcquireRequest, granted: int) -> LaneState:
    if granted == 0:
        return state
    held = {**state.held, request.executor: PermitLease(max(0, request.held) + granted, now + LEASE)}
    return replace(state, held=held, granted=state.granted + granted)


def _capacities(state: LaneState, now: float, request: AcquireRequest, reserved: float) -> Capacities:
    """Return how many calls each limit of the lane allows now."""
    policy = request.policy
    is_probe = state.open_until > 0
    open_or_probed = now < state.open_until or now < state.probe_until
    share = 60 / state.rpm if state.rpm else 0.0
    cost = reserved * 60 / state.tpm if state.tpm else 0.0
    return [
        (BlockedBy.RETRY_AFTER, 0 if now < state.blocked_until else UNLIMITED),
        (BlockedBy.BREAKER, (0 if open_or_probed else 1) if is_probe else UNLIMITED),
        (BlockedBy.RATE, gcra.capacity(state.next_request_at, now, share)),
        (BlockedBy.TOKENS, gcra.capacity(state.next_token_at, now, cost)),
        (BlockedBy.GAP, (1 if now >= state.next_gap_at else 0) if policy.gap > 0 else UNLIMITED),
        (BlockedBy.CONCURRENCY, _concurrency_capacity(state, policy, is_probe=is_probe)),
    ]


def _concurrency_capacity(state: LaneState, policy: LanePolicy, *, is_probe: bool) -> int:
    """Return how many calls may be added to those in flight; a probe is bound by configuration only."""
    limit = policy.max_concurrency or UNLIMITED
    if not is_probe and policy.is_adaptive:
        limit = min(limit, int(state.concurrency))
        if state.tpm and not state.tokens_per_call and not state.answered:
            limit = min(limit, aimd.START_UNMEASURED)
    return limit - state.in_flight


def _tightest(capacities: Capacities) -> tuple[BlockedBy, int]:
    return min(capacities, key=lambda each: each[1])  # the first of equals


def _ready_in(state: LaneState, now: float, blocked_by: BlockedBy, reserved: float) -> float:
    """Return the seconds until the next request may succeed; at high rates permits are batched."""
    match blocked_by:
        case BlockedBy.RATE:
            return max(state.next_request_at - now, _batching_wait(60 / state.rpm))
        case BlockedBy.TOKENS:
            return max(state.next_token_at - now, _batching_wait(reserved * 60 / state.tpm))
        case BlockedBy.GAP:
            return max(state.next_gap_at - now, MIN_WAIT)
        case BlockedBy.CONCURRENCY:
            return CONCURRENCY_POLL
        case BlockedBy.RETRY_AFTER:
            return min(MAX_WAIT, max(state.blocked_until - now, MIN_WAIT))
        case BlockedBy.BREAKER:
            left = max(state.open_until, state.probe_until) - now
            return min(MAX_WAIT, max(left, MIN_WAIT))
        case _:
            raise ValueError(f"unknown limit: {blocked_by!r}")


def _batching_wait(share: float) -> float:
    return min(BATCHING_WAIT, max(MIN_WAIT, 5 * share))


def _throttled(state: LaneState, now: float, blocked_by: BlockedBy, ready_in: float) -> LaneState:
    is_same = state.blocked_by == blocked_by and now <= state.short_until
    since = state.since if is_same else now
    return replace(state, blocked_by=str(blocked_by), since=since, short_until=now + ready_in + STALE)
