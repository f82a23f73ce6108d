"""Statistical significance of a difference between two batches: intervals and a paired test. Pure.

Pass rates get the Wilson interval, which stays within 0 and 1 near both ends. Flips get the exact McNemar
test: under the null hypothesis a flip is equally likely in both directions, a binomial distribution with
p = 0.5. Differences of paired rates get the Agresti-Min interval, which has a width even if all pairs flip
or none does. Mean differences of paired values get the normal interval, from Welford's running sums.
"""

from dataclasses import dataclass
from math import exp, isfinite, lgamma, log, sqrt
from typing import NamedTuple

Z95 = 1.959963984540054
"""Standard deviations that hold 95 % of a normal distribution between them."""
NEGLIGIBLE = 1e-18


class Interval(NamedTuple):
    """A 95 % confidence interval."""

    low: float
    high: float


def wilson(successes: int, trials: int) -> Interval | None:
    """Return the 95 % Wilson interval of a rate; None without trials."""
    if trials == 0:
        return None
    rate, square = successes / trials, Z95 * Z95
    centre = (rate + square / (2 * trials)) / (1 + square / trials)
    half = Z95 * sqrt(rate * (1 - rate) / trials + square / (4 * trials * trials)) / (1 + square / trials)
    # Rounding must not put the rate outside its interval.
    return Interval(max(0.0, min(rate, centre - half)), min(1.0, max(rate, centre + half)))


def mcnemar(one_way: int, other_way: int) -> float:
    """Return the two-sided p-value of the exact McNemar test; 1 without flips."""
    flips, fewer = one_way + other_way, min(one_way, other_way)
    if one_way == other_way:
        return 1.0
    log_term = lgamma(flips + 1) - lgamma(fewer + 1) - lgamma(flips - fewer + 1) - flips * log(2)
    return min(1.0, 2 * exp(log_term) * _tail(flips, fewer))


def _tail(flips: int, fewer: int) -> float:
    """Sum C(flips, k) for k up to `fewer`, in units of the last and largest, so that none overflows."""
    total = term = 1.0
    for k in range(fewer, 0, -1):
        term *= k / (flips - k + 1)
        total += term
        if term < NEGLIGIBLE * total:
            break
    return total


def rate_difference(newly_passing: int, newly_failing: int, pairs: int) -> tuple[float, Interval] | None:
    """Return the change of a pass rate with its 95 % Agresti-Min interval; None without pairs."""
    if pairs == 0:
        return None
    difference = (newly_passing - newly_failing) / pairs
    better, worse, total = newly_passing + 0.5, newly_failing + 0.5, pairs + 2
    centre = (better - worse) / total
    half = Z95 * sqrt(better + worse - (better - worse) ** 2 / total) / total
    # Adding half a pair to each cell moves the centre towards 0, past the difference if all pairs flip.
    return difference, Interval(
        max(-1.0, min(difference, centre - half)), min(1.0, max(difference, centre + half))
    )


@dataclass(slots=True)
class RunningMean:
    """Mean and variance of a series by Welford's algorithm: no value is kept."""

    count: int = 0
    mean: float = 0.0
    _squares: float = 0.0

    def add(self, value: float) -> None:
        """Add a value."""
        self.count += 1
        delta = value - self.mean
        self.mean += delta / self.count
        self._squares += delta * (value - self.mean)

    @property
    def interval(self) -> Interval | None:
        """The normal 95 % interval of the mean; None with fewer than two values."""
        if self.count < 2:
            return None
        half = Z95 * sqrt(max(0.0, self._squares) / (self.count - 1) / self.count)
        return Interval(self.mean - half, self.mean + half) if isfinite(half) else None
