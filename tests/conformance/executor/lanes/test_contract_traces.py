"""The script on Redis and the arithmetic in Python give a lane the same state after any trace.

They agree to the bit. Traces are drawn from a seed, because they are long.
"""

from collections.abc import Iterator
from contextlib import closing
from itertools import count
from pathlib import Path
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings
from redis import Redis

import executor.lanes.redis_lanes as form
from executor.lanes.contract import AcquireRequest, CallOutcome, Grant, LaneLimit, LanePolicy, Settlement
from executor.lanes.lane import process
from executor.lanes.state import LaneState, read_state
from providers.limits import Headroom, RateLimits

NAMES = (f"traced-{number}" for number in count())
SCRIPT = (Path(form.__file__).parent / "lane.lua").read_text(encoding="utf-8")
START = 1_700_000_000.123456

Trace = list[tuple[float, AcquireRequest | None]]
"""Times and the request at each; None means that the lane is lost."""


MOODS = (
    (*CallOutcome, CallOutcome.OK, CallOutcome.OK, CallOutcome.OK, CallOutcome.FAILED),
    (CallOutcome.OK, CallOutcome.UNUSED, CallOutcome.UNUSED),
    (*[CallOutcome.OK] * 12, CallOutcome.RATE_LIMITED),
    (*[CallOutcome.RATE_LIMITED] * 6, CallOutcome.OK),
    (*[CallOutcome.OK] * 5, CallOutcome.OVERLOADED, CallOutcome.RATE_LIMITED),
    (*[CallOutcome.OVERLOADED] * 6, CallOutcome.OK, CallOutcome.FAILED),
    (CallOutcome.OVERLOADED,),
    (CallOutcome.FAILED, CallOutcome.FAILED, CallOutcome.OK, CallOutcome.UNUSED, CallOutcome.ABANDONED),
    (
        CallOutcome.UNREACHED,
        CallOutcome.UNREACHED,
        CallOutcome.UNREACHED,
        CallOutcome.UNREACHED,
        CallOutcome.REFUSED,
    ),
)
"""Distributions of call outcomes."""


class Dice(Random):
    """Draws requests that are likely to reach limits."""

    mood: tuple[CallOutcome, ...] = MOODS[0]
    is_reported: bool = True
    """Whether providers report limits."""
    has_retry_after: bool = True
    """Whether some replies carry Retry-After."""
    is_shared: bool = False
    """Whether batches declare limits on the lane."""

    def seconds(self, most: float) -> float:
        return self.choice([0.0, self.uniform(0.0, most), self.uniform(0.0, 0.2), self.uniform(0.0, 1.0)])

    def maybe(self, *values: float) -> float | None:
        return self.choice([None, self.uniform(0.0, 1e5), *values])

    def headroom(self) -> Headroom:
        return Headroom(self.maybe(0.0, -1.0, 60.0, 3000.0, 1e13), self.maybe(0.0, 1.0, 30.0))

    def settlement(self) -> Settlement:
        return Settlement(
            self.choice(self.mood),
            self.choice([0.0, 100.0, 333.3]),
            self.maybe(0.0, 50.0, 150.7, 1e13),
            self.choice([self.seconds(70.0), self.seconds(2.0), -1.0]),
            self.choice([None, None, None, self.seconds(40.0), 1e5]) if self.has_retry_after else None,
            RateLimits(self.headroom(), self.headroom())
            if self.is_reported and self.random() < 0.3
            else None,
        )

    def policy(self) -> LanePolicy:
        return LanePolicy(
            rpm=self.maybe(0.0, 60.0, 600.0, 3000.0, 1e13) if self.is_reported else None,
            tpm=self.choice([None, self.maybe(0.0, 300_000.0)]),
            max_concurrency=self.choice([None, None, 0, 1, 50]),
            gap=self.choice([0.0, 0.0, 0.0, 0.4, 5.0]),
            breaker_failures=self.randint(1, 4),
            breaker_seconds=self.choice([0.5, 3.0, 30.0]),
            is_adaptive=self.random() < 0.9,
        )

    def limits(self) -> tuple[LaneLimit, ...]:
        origins = self.sample(["one limits", "two target a:b", "limit:three"], self.choice([0, 1, 1, 2]))
        return tuple(self._limit(origin) for origin in origins)

    def _limit(self, origin: str) -> LaneLimit:
        rpm, tpm = self.maybe(0.0, 30.0, 600.0, 1e13), self.choice([None, self.maybe(0.0, 300_000.0)])
        return LaneLimit(origin, rpm, tpm, self.choice([None, 0, 1, 20]), self.choice([0.0, 0.0, 0.4, 5.0]))

    def request(self, lane: str, policy: LanePolicy) -> AcquireRequest:
        settlements = tuple(self.settlement() for _ in range(self.choice([0, 1, 1, 2, 6])))
        estimate, holder = self.choice([0.0, self.uniform(0, 2e3)]), self.choice(["a", "b", "held:c d"])
        held, wanted = self.choice([0, self.randint(0, 30)]), self.choice([0, 1, self.randint(0, 40)])
        limits = self.limits() if self.is_shared else ()
        withdrawn = ("one limits", "limit:three") if self.is_shared and self.random() < 0.1 else ()
        return AcquireRequest(lane, holder, held, wanted, estimate, policy, settlements, limits, withdrawn)

    def trace(self, lane: str, length: int) -> Trace:
        self.mood, self.is_reported = self.choice(MOODS), self.choice([True, False])
        self.is_shared, self.has_retry_after = self.choice([True, True, False]), self.choice([True, False])
        policies, now, steps = [self.policy() for _ in range(self.choice([1, 1, 2]))], START, Trace()
        longest = self.choice([1.0, 6.0, 90.0])
        for _ in range(length):
            now += self.choice([self.seconds(1.0), self.seconds(longest)])
            is_lost = self.random() < 0.03
            steps.append((now, None if is_lost else self.request(lane, self.choice(policies))))
        return steps


def in_python(trace: Trace) -> Iterator[tuple[LaneState, Grant]]:
    state = LaneState()
    for now, request in trace:
        if request is None:
            state = LaneState()
            continue
        state, grant = process(state, now, request)
        yield state, grant


def in_lua(redis: Redis, lane: str, trace: Trace) -> Iterator[tuple[LaneState, Grant]]:
    digest: Any = redis.script_load(SCRIPT)
    key = form.lane_key(lane)
    with redis.pipeline(transaction=False) as pipe:
        for now, request in trace:
            if request is None:
                pipe.delete(key)
            else:
                names, arguments = form.call_for(request, now=now)
                pipe.evalsha(digest, 1, *names, *arguments)
                pipe.hgetall(key)
        replies = iter(pipe.execute())
    for _, request in trace:
        reply = next(replies)
        if request is not None:
            yield read_state(next(replies)), form._grant(*reply)


@pytest.fixture(scope="module")
def redis(servers):
    with closing(Redis.from_url(servers.redis_url)) as client:
        yield client


@settings(max_examples=60, deadline=None)
@given(seed=st.integers(0, 1 << 32), length=st.integers(1, 120))
def test_python_and_lua_agree_on_every_grant_and_every_number(redis, seed, length):
    """Several executors acquire and settle at any time, and state is lost in between."""
    lane = next(NAMES)
    trace = Dice(seed).trace(lane, length)
    pairs = zip(in_python(trace), in_lua(redis, lane, trace), strict=True)
    for number, ((expected, wanted), (state, grant)) in enumerate(pairs):
        assert grant == wanted, number
        assert state == expected, number
