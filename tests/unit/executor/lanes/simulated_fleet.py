"""A fleet, its lanes and a provider in virtual time: seeded, and fast."""

import heapq
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import count
from random import Random

from executor.lanes.contract import AcquireRequest, CallOutcome, Grant, LanePolicy, Settlement
from executor.lanes.lane import grant_permits, settle
from executor.lanes.state import LaneState
from providers.limits import Headroom, RateLimits

START = 1_700_000_000.0


@dataclass
class Bucket:
    """The rate limit that a provider enforces: a bucket that holds one second of it."""

    per_second: float
    level: float
    at: float = START

    def refilled(self, now: float) -> float:
        self.level = min(self.per_second, self.level + (now - self.at) * self.per_second)
        self.at = now
        return self.level


@dataclass
class Provider:
    """A provider that answers or refuses, and can advertise its limits."""

    random: Random
    rpm: float | None = None
    tpm: float | None = None
    reports_limits: bool = False
    latency: tuple[float, float] = (0.3, 0.8)
    tokens: tuple[int, int] = (100, 300)
    retry_after: float | None = None
    down: tuple[float, float] = (0.0, 0.0)
    """The start and the end of an outage."""
    overloaded: float = 0.0
    """The share of admitted calls that are answered with 529."""
    stray: float = 0.0
    """The share of admitted calls that are answered with 429, without Retry-After."""
    capacity: int | None = None
    """Calls in flight beyond which it answers with 529."""
    in_flight: list[float] = field(default_factory=list)
    """When the calls in flight end."""
    starts: list[float] = field(default_factory=list)
    served: list[tuple[float, int]] = field(default_factory=list)
    refused: list[float] = field(default_factory=list)
    """Calls beyond the rate limit."""
    rejected: list[float] = field(default_factory=list)
    """Calls that met an overload, or a stray 429."""

    def __post_init__(self) -> None:
        self.requests = Bucket(self.rpm / 60, self.rpm / 60) if self.rpm else None
        self.budget = Bucket(self.tpm / 60, self.tpm / 60) if self.tpm else None

    def call(self, now: float, reserved: float) -> tuple[float, Settlement]:
        """Return the duration of a call, and its outcome."""
        self.starts.append(now)
        took, tokens = self.random.uniform(*self.latency), self.random.randint(*self.tokens)
        if self.down[0] <= now < self.down[1]:
            return 0.05, Settlement(CallOutcome.FAILED, reserved, age=0.05)
        if not self._admits(now, tokens):
            self.refused.append(now)
            refusal = Settlement(CallOutcome.RATE_LIMITED, reserved, age=0.05, limits=self._limits())
            return 0.05, replace(refusal, retry_after=self.retry_after)
        if reject := self._rejects(now):
            self.rejected.append(now)
            return 0.05, Settlement(reject, reserved, age=0.05, limits=self._limits())
        self.served.append((now, tokens))
        heapq.heappush(self.in_flight, now + took)
        return took, Settlement(CallOutcome.OK, reserved, tokens, took, limits=self._limits())

    def _rejects(self, now: float) -> CallOutcome | None:
        while self.in_flight and self.in_flight[0] <= now:
            heapq.heappop(self.in_flight)
        drawn = self.random.random()
        if drawn < self.overloaded or (self.capacity and len(self.in_flight) >= self.capacity):
            return CallOutcome.OVERLOADED
        return CallOutcome.RATE_LIMITED if drawn < self.overloaded + self.stray else None

    def _admits(self, now: float, tokens: int) -> bool:
        costs = [(self.requests, 1), (self.budget, tokens)]
        spent = [(bucket, cost) for bucket, cost in costs if bucket]
        if any(bucket.refilled(now) < cost for bucket, cost in spent):
            return False
        for bucket, cost in spent:
            bucket.level -= cost
        return True

    def _limits(self) -> RateLimits | None:
        if not self.reports_limits:
            return None
        return RateLimits(_headroom(self.rpm, self.requests), _headroom(self.tpm, self.budget))

    def served_between(self, begin: float, end: float) -> int:
        return sum(begin <= at - START < end for at, _ in self.served)

    def tokens_between(self, begin: float, end: float) -> int:
        return sum(tokens for at, tokens in self.served if begin <= at - START < end)


def _headroom(limit: float | None, bucket: Bucket | None) -> Headroom:
    return Headroom(limit, bucket.level) if bucket else Headroom()


@dataclass
class Executor:
    """An executor that has a fixed number of slots and requests permits only when the test calls it."""

    name: str
    slots: int = 200
    held: int = 0
    settlements: list[Settlement] = field(default_factory=list)
    is_idle: bool = False


@dataclass
class Fleet:
    """Executors at one lane of one provider."""

    provider: Provider
    policy: LanePolicy
    estimate: float = 200.0
    size: int = 4
    state: LaneState = field(default_factory=LaneState)
    now: float = START
    granted: list[tuple[float, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = count()
        for number in range(self.size):
            executor = Executor(f"executor-{number}")
            self._at(START + number * 0.013, self._asks(executor))

    def run(self, seconds: float) -> None:
        """Advance the virtual time."""
        end = self.now + seconds
        while self._events and self._events[0][0] < end:
            self.now, _, happen = heapq.heappop(self._events)
            happen()
        self.now = end

    def _at(self, moment: float, happen: Callable[[], None]) -> None:
        heapq.heappush(self._events, (moment, next(self._order), happen))

    def _asks(self, executor: Executor) -> Callable[[], None]:
        return lambda: self._ask(executor)

    def _ask(self, executor: Executor) -> None:
        wanted, settlements = executor.slots - executor.held, tuple(executor.settlements)
        ask = AcquireRequest(
            "lane", executor.name, executor.held, wanted, self.estimate, self.policy, settlements
        )
        executor.settlements.clear()
        grant = self._answer(ask)
        executor.held += grant.granted
        for _ in range(grant.granted):
            self._call(executor, grant)
        executor.is_idle = grant.ready_in == 0
        if not executor.is_idle:
            self._at(self.now + grant.ready_in, self._asks(executor))

    def _answer(self, ask: AcquireRequest) -> Grant:
        for settlement in ask.settlements:
            self.state = settle(self.state, self.now, self.policy, settlement)
        self.state, grant = grant_permits(self.state, self.now, ask)
        if grant.granted:
            self.granted.append((self.now, grant.granted))
        return grant

    def _call(self, executor: Executor, grant: Grant) -> None:
        took, settlement = self.provider.call(self.now, grant.reserved)
        begun = self.now

        def end() -> None:
            executor.held -= 1
            executor.settlements.append(replace(settlement, age=self.now - begun))
            if executor.is_idle:
                executor.is_idle = False
                self._ask(executor)

        self._at(self.now + took, end)
