"""What a provider saw, compared with the strictest limit in force at each moment. Pure.

A limit is in force from the first call of its batch until the batch is paused or over. GCRA admits a burst:
in any T seconds at most rpm / 60 * (T + 0.25) + 1 calls start. Tokens are known only once a call is over,
so their bound is exceeded by at most what the calls in flight use.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from domain.batch_spec import Limits
from executor.lanes.gcra import BURST

NOT_YET = float("inf")
ROUNDING = 1e-3


@dataclass(slots=True)
class Call:
    """One call as the provider saw it."""

    batch_id: str
    started: float
    tokens: int = 0
    ended: float = NOT_YET


@dataclass(frozen=True, slots=True)
class InForce:
    """A limit, whose it is, and when it was in force."""

    batch_id: str
    limits: Limits
    begun: float
    over: float
    overall: int | None = None
    """Calls of this batch alone that may be in flight."""


def violations(calls: Sequence[Call], in_force: Sequence[InForce], *, lag: float = 0.0) -> list[str]:
    """List every limit that was exceeded; a call may arrive `lag` seconds after its permit was granted."""
    found: list[str] = []
    for limit in in_force:
        within = [call for call in calls if limit.begun <= call.started <= limit.over]
        found += [f"{limit}: {each}" for each in _exceeded(limit, within, calls, lag)]
    return found


def _exceeded(limit: InForce, within: Sequence[Call], calls: Sequence[Call], lag: float) -> Iterator[str]:
    limits = limit.limits
    if limits.rpm and (over := _over(within, [1.0] * len(within), limits.rpm, BURST + lag)) > ROUNDING:
        yield f"{over:.2f} calls above {limits.rpm:g} a minute"
    if limits.tpm:
        most = max((call.tokens for call in calls), default=0) * (most_in_flight(calls) + 1)
        over = _over(within, [float(call.tokens) for call in within], limits.tpm, BURST + lag) - most
        if over > ROUNDING:
            yield f"{over:.0f} tokens above {limits.tpm:g} a minute"
    if limits.max_concurrency and (most := most_in_flight(calls, within)) > limits.max_concurrency:
        yield f"{most} calls in flight, at most {limits.max_concurrency}"
    if limits.delay and (gap := _shortest_gap(within)) < limits.delay - lag - ROUNDING:
        yield f"{gap:.3f} s between two calls, at least {limits.delay:g}"
    own = [call for call in calls if call.batch_id == limit.batch_id]
    if limit.overall and (most := most_in_flight(own)) > limit.overall:
        yield f"{most} calls of the batch in flight, at most {limit.overall}"


def _over(calls: Sequence[Call], weights: Sequence[float], per_minute: float, burst: float) -> float:
    """Return by how much the worst of all windows exceeds the bound, beyond the one call that is free."""
    rate, total, least, worst = per_minute / 60, 0.0, NOT_YET, 0.0
    for call, weight in zip(calls, weights, strict=True):
        least = min(least, total - rate * call.started)
        total += weight
        worst = max(worst, total - weight - rate * call.started - least - rate * burst)
    return worst


def most_in_flight(calls: Sequence[Call], starts: Sequence[Call] | None = None) -> int:
    """Count the calls in flight at the worst of some starts."""
    ends = sorted(call.ended for call in calls)
    begins = sorted(call.started for call in calls)
    moments = begins if starts is None else [call.started for call in starts]
    return max((bisect_right(begins, at) - bisect_right(ends, at) for at in moments), default=0)


def _shortest_gap(calls: Sequence[Call]) -> float:
    moments = [call.started for call in calls]
    return min((later - at for at, later in pairwise(moments)), default=NOT_YET)
