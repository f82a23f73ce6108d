"""The state of a lane, as shown in status output. Pure."""

from executor.lanes import breaker
from executor.lanes.contract import BlockedBy, LaneLimit, LaneView
from executor.lanes.state import LaneState, LimitInForce

Throttling = tuple[BlockedBy | None, float | None, float | None]
"""The limit that blocks, since when, and until when."""


def view(lane: str, state: LaneState, now: float) -> LaneView:
    """Describe a lane at a time; expired leases, limits and blocks are left out."""
    blocked_by, since, until = _throttling(state, now)
    return LaneView(
        lane=lane,
        blocked_by=blocked_by,
        since=since,
        until=until,
        rpm=state.rpm or None,
        tpm=state.tpm or None,
        in_flight=sum(each.count for each in state.held.values() if each.until > now),
        concurrency=state.concurrency,
        breaker=breaker.status(state, now),
        failures=state.failures + state.overloads,
        granted=state.granted,
        rate_limited=state.rate_limited,
        tokens_per_call=state.tokens_per_call or None,
        message=_message(state, now, blocked_by),
        limits=tuple(
            _limit(origin, each) for origin, each in sorted(state.limits.items()) if each.until > now
        ),
    )


def _limit(origin: str, limit: LimitInForce) -> LaneLimit:
    max_concurrency = limit.max_concurrency or None
    return LaneLimit(origin, limit.rpm or None, limit.tpm or None, max_concurrency, limit.gap)


def _throttling(state: LaneState, now: float) -> Throttling:
    if now < state.blocked_until:
        return BlockedBy.RETRY_AFTER, state.blocked_at, state.blocked_until
    if state.open_until:
        return BlockedBy.BREAKER, state.broken_at, state.open_until if now < state.open_until else None
    if not state.blocked_by or now > state.short_until:
        return None, None, None
    return _throttled_by(BlockedBy(state.blocked_by), state, now)


def _throttled_by(blocked_by: BlockedBy, state: LaneState, now: float) -> Throttling:
    match blocked_by:
        case BlockedBy.RETRY_AFTER | BlockedBy.BREAKER:
            return None, None, None
        case BlockedBy.RATE:
            return blocked_by, state.since, max(now, state.next_request_at)
        case BlockedBy.TOKENS:
            return blocked_by, state.since, max(now, state.next_token_at)
        case BlockedBy.GAP:
            return blocked_by, state.since, max(now, state.next_gap_at)
        case BlockedBy.CONCURRENCY:
            return blocked_by, state.since, None
        case _:
            raise ValueError(f"unknown limit: {blocked_by!r}")


def _message(state: LaneState, now: float, blocked_by: BlockedBy | None) -> str:
    match blocked_by:
        case None:
            return ""
        case BlockedBy.RATE:
            return f"limited to {state.rpm:,.0f} requests per minute"
        case BlockedBy.TOKENS:
            return f"limited to {state.tpm:,.0f} tokens per minute"
        case BlockedBy.GAP:
            return "minimum gap between two calls"
        case BlockedBy.CONCURRENCY:
            return f"concurrency limit reached ({int(state.concurrency):,} calls in flight)"
        case BlockedBy.RETRY_AFTER:
            return f"Retry-After for {state.blocked_until - now:.0f} s more"
        case BlockedBy.BREAKER:
            opened = f"circuit breaker open after {state.failures + state.overloads:,} consecutive failures"
            return f"{opened}; {_next_probe(state, now)}"
        case _:
            raise ValueError(f"unknown limit: {blocked_by!r}")


def _next_probe(state: LaneState, now: float) -> str:
    if now < state.open_until:
        return f"next probe in {state.open_until - now:.0f} s"
    return "probe in flight" if now < state.probe_until else "the next call is the probe"
