"""How a lane stands, said for people. Pure."""

from executor.lanes import breaker
from executor.lanes.contract import LaneLimit, LaneView, Why
from executor.lanes.state import LaneState, LimitInForce

Standing = tuple[Why | None, float | None, float | None]
"""Why, since, until."""


def view(lane: str, state: LaneState, now: float) -> LaneView:
    """Describe a lane; what has passed by itself is not said any more."""
    why, since, until = _standing(state, now)
    return LaneView(
        lane=lane,
        why=why,
        since=since,
        until=until,
        rpm=state.rpm or None,
        tpm=state.tpm or None,
        in_flight=sum(each.count for each in state.held.values() if each.until > now),
        concurrency=state.concurrency,
        breaker=breaker.standing(state, now),
        failures=state.failures,
        granted=state.granted,
        rate_limited=state.rate_limited,
        tokens_per_call=state.tokens_per_call or None,
        message=_message(state, now, why),
        limits=tuple(
            _limit(origin, each) for origin, each in sorted(state.limits.items()) if each.until > now
        ),
    )


def _limit(origin: str, limit: LimitInForce) -> LaneLimit:
    most = limit.max_concurrency or None
    return LaneLimit(origin, limit.rpm or None, limit.tpm or None, most, limit.gap)


def _standing(state: LaneState, now: float) -> Standing:
    if now < state.blocked_until:
        return Why.RETRY_AFTER, state.blocked_at, state.blocked_until
    if state.open_until:
        return Why.BREAKER, state.broken_at, state.open_until if now < state.open_until else None
    if not state.why or now > state.short_until:
        return None, None, None
    return _held_back(Why(state.why), state, now)


def _held_back(why: Why, state: LaneState, now: float) -> Standing:
    match why:
        case Why.RETRY_AFTER | Why.BREAKER:
            return None, None, None
        case Why.RATE:
            return why, state.since, max(now, state.next_request_at)
        case Why.TOKENS:
            return why, state.since, max(now, state.next_token_at)
        case Why.GAP:
            return why, state.since, max(now, state.next_gap_at)
        case Why.CONCURRENCY:
            return why, state.since, None
        case _:
            raise ValueError(f"no reason: {why!r}")


def _message(state: LaneState, now: float, why: Why | None) -> str:
    match why:
        case None:
            return ""
        case Why.RATE:
            return f"keeps to {state.rpm:,.0f} calls a minute"
        case Why.TOKENS:
            return f"keeps to {state.tpm:,.0f} tokens a minute"
        case Why.GAP:
            return "keeps the configured time between two calls"
        case Why.CONCURRENCY:
            return f"as many calls are under way as it takes now ({int(state.concurrency):,})"
        case Why.RETRY_AFTER:
            return f"asked to be left alone for {state.blocked_until - now:.0f} s more"
        case Why.BREAKER:
            return f"{state.failures:,} calls in a row failed; {_next_probe(state, now)}"
        case _:
            raise ValueError(f"no reason: {why!r}")


def _next_probe(state: LaneState, now: float) -> str:
    if now < state.open_until:
        return f"a probe goes out in {state.open_until - now:.0f} s"
    return "a probe is under way" if now < state.probe_until else "the next call is a probe"
