"""Lanes on Redis: one hash a lane, one script that settles and grants on the server's clock.

An ask that was not answered may have been heard. What it granted is then nobody's: the next ask says anew
how much is held, and the share of the rate is gone, which errs on the right side.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from redis.asyncio import Redis

from eventlog.scripts import Call, Script
from executor.lanes.contract import Ask, Grant, LanesUnavailable, LaneView, Settlement, Why
from executor.lanes.state import read_state
from executor.lanes.views import view
from providers.limits import RateLimits
from taskqueue.refusals import answers, translated
from taskqueue.tasks import QueueUnavailable

STAYS = 86_400
"""Seconds for which a lane is remembered that nobody asks."""

CHUNK = 200
"""Settlements in one call of the script."""

_LANE = Script(Path(__file__).parent / "lane.lua")


def lane_key(lane: str) -> str:
    """Name the hash of a lane."""
    return f"eval:lane:{{{lane}}}"


class RedisLanes:
    """`Lanes` of a fleet, on a Redis or Valkey server; its clock is all executors' clock.

    Only a test has a `now` of its own.
    """

    def __init__(self, redis: Redis, *, now: Callable[[], float] | None = None) -> None:
        self._redis = redis
        self._now = now

    async def ask(self, asks: Sequence[Ask]) -> list[Grant]:
        """Settle, then grant, all in one round trip."""
        with _reached():
            now = self._now() if self._now else None
            calls = [(each, call_for(part, now=now)) for each in asks for part in _parts(each)]
            replies = await _LANE.run(self._redis, [call for _, call in calls])
        last = {ask.lane: reply for (ask, _), reply in zip(calls, replies, strict=True)}
        return [_grant(*last[each.lane]) for each in asks]

    async def views(self, lanes: Sequence[str]) -> list[LaneView]:
        """Say how lanes stand, all in one round trip."""
        with _reached():
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.time()
                for lane in lanes:
                    pipe.hgetall(lane_key(lane))
                (seconds, micros), *found = await answers(pipe)
        now = self._now() if self._now else seconds + micros / 1_000_000
        return [view(lane, read_state(each), now) for lane, each in zip(lanes, found, strict=True)]


def _parts(ask: Ask) -> Iterator[Ask]:
    """Cut what was saved up during an outage: Redis serves nobody else meanwhile."""
    first = range(0, max(0, len(ask.settlements) - CHUNK), CHUNK)
    for at in first:
        yield replace(ask, wanted=0, settlements=ask.settlements[at : at + CHUNK])
    yield replace(ask, settlements=ask.settlements[len(first) * CHUNK :])


def call_for(ask: Ask, *, now: float | None = None) -> Call:
    """Put an ask as the script takes it; `now` is the server's, unless it is given."""
    policy = ask.policy
    arguments: list[Any] = [_text(now), STAYS, ask.executor, ask.held, ask.wanted, _text(ask.estimate)]
    arguments += map(_text, (policy.rpm, policy.tpm, policy.max_concurrency, policy.gap))
    arguments += map(_text, (policy.breaker_failures, policy.breaker_seconds))
    arguments += [int(policy.is_adaptive), len(ask.limits), len(ask.withdrawn)]
    for limit in ask.limits:
        numbers = (limit.rpm, limit.tpm, limit.max_concurrency, limit.gap)
        arguments += [limit.origin, *map(_text, numbers)]
    arguments += ask.withdrawn
    for settlement in ask.settlements:
        arguments += [str(settlement.outcome), *map(_text, _numbers(settlement))]
    return [lane_key(ask.lane)], arguments


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
    """Say a number so that nothing of it is lost."""
    return "" if number is None else format(number, ".17g")


def _grant(granted: int, reserved: bytes, why: bytes, ready_in: bytes) -> Grant:
    return Grant(granted, float(reserved), Why(why.decode()) if why else None, float(ready_in))


@contextmanager
def _reached() -> Iterator[None]:
    try:
        with translated():
            yield
    except QueueUnavailable as error:
        raise LanesUnavailable(str(error)) from error
