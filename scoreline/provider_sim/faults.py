"""Seeded draws: the fault of a call, and its latency.

A draw depends on the seed, on the request and on how often that request has been received, never on the
order of other calls: the same work meets the same faults in every run, and a retry is drawn anew.
"""

import math
from hashlib import blake2b
from statistics import NormalDist

from scoreline.provider_sim.settings import FaultSettings, LatencySettings

_P95 = NormalDist().inv_cdf(0.95)
_WHOLE = ("overloaded", "stray_429", "server_error", "reset_before", "reset_midway", "html", "truncated")
_STREAMED = (
    "overloaded", "stray_429", "server_error", "reset_before", "reset_midway", "stream_error",
    "stream_broken",
)  # fmt: skip


def uniform(*parts: object) -> float:
    """Draw from 0 up to 1: deterministic in its arguments."""
    digest = blake2b(repr(parts).encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") / 2**64


def draw_fault(faults: FaultSettings, *, streamed: bool, fortune: float) -> str | None:
    """Draw a fault, or none; rates that add up to more than 1 leave no call without one."""
    below = 0.0
    for name in _STREAMED if streamed else _WHOLE:
        below += getattr(faults, name)
        if fortune < below:
            return name
    return None


def draw_latency(latency: LatencySettings, fortune: float) -> float:
    """Draw the latency in seconds."""
    if latency.latency <= 0 or latency.latency_p95 <= latency.latency:
        return latency.latency
    spread = math.log(latency.latency_p95 / latency.latency) / _P95
    return latency.latency * math.exp(spread * NormalDist().inv_cdf(min(max(fortune, 1e-9), 1 - 1e-9)))
