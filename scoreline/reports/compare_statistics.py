"""What a difference between two batches is worth: intervals and a paired test, without approximation
where that is cheap. Pure.

Pass rates get Wilson's interval, which stays sensible near 0 and 1. Flips get McNemar's exact test: if
nothing had changed, each flip would be as likely in one direction as in the other, like the toss of a
coin. Mean differences of paired values get the normal interval, from sums that are kept as pairs come.
"""

from dataclasses import dataclass
from math import exp, isfinite, lgamma, log, sqrt
from typing import NamedTuple

Z95 = 1.959963984540054
"""Standard deviations that hold 95 % of a normal distribution between them."""
NEGLIGIBLE = 1e-18


class Interval(NamedTuple):
    """An interval that holds the true value in 95 of 100 cases."""

    low: float
    high: float


def wilson(successes: int, trials: int) -> Interval | None:
    """Return Wilson's 95 % interval of a rate; None where nothing was tried."""
    if trials == 0:
        return None
    rate, square = successes / trials, Z95 * Z95
    centre = (rate + square / (2 * trials)) / (1 + square / trials)
    half = Z95 * sqrt(rate * (1 - rate) / trials + square / (4 * trials * trials)) / (1 + square / trials)
    # Rounding must not put the rate itself outside.
    return Interval(max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half)))


def mcnemar(one_way: int, other_way: int) -> float:
    """Return the two-sided p-value of the exact test for flips; 1 where there was none."""
    flips, fewer = one_way + other_way, min(one_way, other_way)
    if one_way == other_way:
        return 1.0
    log_term = lgamma(flips + 1) - lgamma(fewer + 1) - lgamma(flips - fewer + 1) - flips * log(2)
    return min(1.0, 2 * exp(log_term) * _tail(flips, fewer))


def _tail(flips: int, fewer: int) -> float:
    """Sum C(flips, k) for k up to `fewer`, in units of the last, which is the largest: none overflows."""
    total = term = 1.0
    for k in range(fewer, 0, -1):
        term *= k / (flips - k + 1)
        total += term
        if term < NEGLIGIBLE * total:
            break
    return total


def rate_difference(newly_passing: int, newly_failing: int, pairs: int) -> tuple[float, Interval] | None:
    """Return how much a pass rate has risen, with its paired 95 % interval; None without pairs."""
    if pairs == 0:
        return None
    difference = (newly_passing - newly_failing) / pairs
    spread = newly_passing + newly_failing - (newly_passing - newly_failing) ** 2 / pairs
    half = Z95 * sqrt(max(0.0, spread)) / pairs
    return difference, Interval(max(-1.0, difference - half), min(1.0, difference + half))


@dataclass(slots=True)
class RunningMean:
    """Mean and spread of values as they come, by Welford's recurrence: no value is kept."""

    count: int = 0
    mean: float = 0.0
    _squares: float = 0.0

    def add(self, value: float) -> None:
        """Take a value in."""
        self.count += 1
        delta = value - self.mean
        self.mean += delta / self.count
        self._squares += delta * (value - self.mean)

    @property
    def interval(self) -> Interval | None:
        """The normal 95 % interval of the mean; None of fewer than two values."""
        if self.count < 2:
            return None
        half = Z95 * sqrt(max(0.0, self._squares) / (self.count - 1) / self.count)
        return Interval(self.mean - half, self.mean + half) if isfinite(half) else None
