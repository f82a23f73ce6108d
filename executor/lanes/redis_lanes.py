"""Lanes on Redis: one hash per lane, one script that settles and grants on the server's clock.

A request whose response is lost may have been processed. Its permits are then held by no executor: the next
request replaces the lease by what is held, and the lost share of the rate keeps the lane below its limit.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from eventlog.scripts import Call, Script
from executor.lanes.contract import AcquireRequest, BlockedBy, Grant, LanesUnavailable, LaneView, Settlement
from executor.lanes.state import read_state
from executor.lanes.views import view
from providers.limits import RateLimits
from taskqueue.refusals import QUEUE_ERRORS, answers
from taskqueue.tasks import QueueUnavailable

TTL = 86_400
"""Seconds after the last request when a lane's state expires."""

CHUNK = 200
"""Maximum settlements in one call of the script."""

_LANE = Script(Path(__file__).parent / "lane.lua")


def lane_key(lane: str) -> str:
    """Return the Redis key of a lane's hash."""
    return f"eval:lane:{{{lane}}}"


class RedisLanes:
    """`Lanes` of all executors, on a Redis or Valkey server whose clock they share.

    Tests inject another clock as `now`.
    """

    def __init__(self, redis: Redis, *, now: Callable[[], float] | None = None) -> None:
        self._redis = redis
        self._now = now

    async def acquire(self, requests: Sequence[AcquireRequest]) -> list[Grant]:
        """Settle, then grant, all in one round trip."""
        with _translate_errors():
            now = self._now() if self._now else None
            calls = [(each, call_for(part, now=now)) for each in requests for part in _parts(each)]
            replies = await _LANE.run(self._redis, [call for _, call in calls])
        last = {request.lane: reply for (request, _), reply in zip(calls, replies, strict=True)}
        return [_grant(*last[each.lane]) for each in requests]

    async def views(self, lanes: Sequence[str]) -> list[LaneView]:
        """Return the state of lanes, all in one round trip."""
        with _translate_errors():
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.time()
                for lane in lanes:
                    pipe.hgetall(lane_key(lane))
                (seconds, micros), *hashes = await answers(pipe)
        now = self._now() if self._now else seconds + micros / 1_000_000
        return [view(lane, read_state(each), now) for lane, each in zip(lanes, hashes, strict=True)]


def _parts(request: AcquireRequest) -> Iterator[AcquireRequest]:
    """Split the settlements collected during an outage: a script blocks the server while it runs."""
    settlements = request.settlements
    first = range(0, max(0, len(settlements) - CHUNK), CHUNK)
    for at in first:
        yield replace(request, wanted=0, settlements=settlements[at : at + CHUNK])
    yield replace(request, settlements=settlements[len(first) * CHUNK :])


def call_for(request: AcquireRequest, *, now: float | None = None) -> Call:
    """Encode a request as keys and arguments of the script; without `now` the server's clock is used."""
    policy = request.policy
    arguments: list[Any] = [_text(now), TTL, request.executor, request.held, request.wanted]
    arguments.append(_text(request.estimate))
    arguments += map(_text, (policy.rpm, policy.tpm, policy.max_concurrency, policy.gap))
    arguments += map(_text, (policy.breaker_failures, policy.breaker_seconds))
    arguments += [int(policy.is_adaptive), len(request.limits), len(request.withdrawn)]
    for limit in request.limits:
        numbers = (limit.rpm, limit.tpm, limit.max_concurrency, limit.gap)
        arguments += [limit.origin, *map(_text, numbers)]
    arguments += request.withdrawn
    for settlement in request.settlements:
        arguments += [str(settlement.outcome), *map(_text, _numbers(settlement))]
    return [lane_key(request.lane)], arguments


def _numbers(settlement: Settlement) -> tuple[float | None, ...]:
    limits = settlement.limits or RateLimits()
    return (
        settlement.reserved,
        settlement.tokens,
        settlement.age,
        settlement.retry_after,
        limits.requests.limit,
        limits.requests.remaining,
        limits.tokens.limit,
        limits.tokens.remaining,
    )


def _text(number: float | None) -> str:
    """Format a number without loss of precision."""
    return "" if number is None else format(number, ".17g")


def _grant(granted: int, reserved: bytes, blocked_by: bytes, ready_in: bytes) -> Grant:
    limit = BlockedBy(blocked_by.decode()) if blocked_by else None
    return Grant(granted, float(reserved), limit, float(ready_in))


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        with QUEUE_ERRORS:
            yield
    except QueueUnavailable as error:
        raise LanesUnavailable(str(error)) from error
