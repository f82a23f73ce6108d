"""Token buckets with continuous refill: the limits of a key, in requests and tokens per minute.

A bucket holds the refill of `burst` seconds. A call that costs more than the capacity is admitted when the
bucket is full and leaves a debt, so that it is served eventually and the rate still holds. No clock is read
here.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from scoreline.provider_sim.settings import SimulatedRateLimits

MINUTE = 60.0
_GRAIN = 1e-9
"""Less than this is rounding, not waiting."""


@dataclass(frozen=True, slots=True)
class BucketStatus:
    """The state of a bucket for headers, with the seconds until it is full."""

    limit: int
    remaining: int
    reset: float


class Bucket:
    """Fills at a rate a second up to its capacity."""

    __slots__ = ("_at", "_level", "capacity", "rate")

    def __init__(self, rate: float, capacity: float, *, now: float) -> None:
        self.rate = rate
        self.capacity = capacity
        self._level = capacity
        self._at = now

    def level(self, now: float) -> float:
        """Return the level; a debt is negative."""
        return min(self.capacity, self._level + max(0.0, now - self._at) * self.rate)

    def wait(self, cost: float, *, now: float) -> float:
        """Return the seconds until a call of this cost would be admitted."""
        missing = (min(cost, self.capacity) - self.level(now)) / self.rate
        return missing if missing > _GRAIN else 0.0

    def take(self, cost: float, *, now: float) -> None:
        """Charge a call."""
        self._level = self.level(now) - cost
        self._at = max(now, self._at)

    def status(self, now: float) -> BucketStatus:
        """Return the state of the bucket."""
        level = self.level(now)
        limit = round(self.rate * MINUTE)
        return BucketStatus(limit, max(0, math.floor(level)), (self.capacity - level) / self.rate)


@dataclass(frozen=True, slots=True)
class CallWeight:
    """The cost of a call."""

    input_tokens: int
    output_tokens: int

    def of(self, kind: str) -> int:
        """Return the cost in the unit of a bucket."""
        match kind:
            case "requests":
                return 1
            case "tokens":
                return self.input_tokens + self.output_tokens
            case "input-tokens":
                return self.input_tokens
            case "output-tokens":
                return self.output_tokens
            case _:
                raise ValueError(kind)


@dataclass(frozen=True, slots=True)
class Shortage:
    """The bucket that rejected a call, and when it would admit it."""

    kind: str
    retry_after: float


class SimulatedLane:
    """All the limits of one key, or of one model of one key."""

    def __init__(self, limits: SimulatedRateLimits, *, now: float) -> None:
        rates = {
            "requests": limits.rpm,
            "tokens": limits.tpm,
            "input-tokens": limits.input_tpm,
            "output-tokens": limits.output_tpm,
        }
        self._buckets = {
            kind: Bucket(a_minute / MINUTE, max(1.0, a_minute / MINUTE * limits.burst_seconds), now=now)
            for kind, a_minute in rates.items()
            if a_minute > 0
        }

    def admit(self, cost: CallWeight, *, now: float) -> Shortage | None:
        """Admit a call and charge it to every bucket, or to none and return the longest shortage."""
        waits = {kind: bucket.wait(cost.of(kind), now=now) for kind, bucket in self._buckets.items()}
        longest = max(waits, key=waits.__getitem__, default=None)
        if longest is not None and waits[longest] > 0:
            return Shortage(longest, waits[longest])
        for kind, bucket in self._buckets.items():
            bucket.take(cost.of(kind), now=now)
        return None

    def statuses(self, now: float) -> Mapping[str, BucketStatus]:
        """Return the state of each bucket."""
        return {kind: bucket.status(now) for kind, bucket in self._buckets.items()}


class SimulatedLanes:
    """The lanes of all keys; changed limits begin with full buckets."""

    def __init__(self) -> None:
        self._limits = SimulatedRateLimits()
        self._lanes: dict[tuple[str, str], SimulatedLane] = {}

    def lane(self, limits: SimulatedRateLimits, *, key: str, model: str, now: float) -> SimulatedLane:
        """Find the lane a call is charged to."""
        if limits != self._limits:
            self._limits, self._lanes = limits, {}
        name = (key, model if limits.per_model else "")
        if name not in self._lanes:
            self._lanes[name] = SimulatedLane(limits, now=now)
        return self._lanes[name]
