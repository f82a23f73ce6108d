"""Statistics of a comparison against brute force."""

from fractions import Fraction
from math import comb, sqrt
from statistics import fmean, stdev

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scoreline.reports.compare_statistics import Z95, RunningMean, mcnemar, rate_difference, wilson
from tests.unit.scoreline.reports.paired_scores import scores

small = st.integers(0, 120)


@given(small, small)
def test_mcnemar_is_the_exact_binomial_test(one_way: int, other_way: int) -> None:
    """The p-value equals the sum over all outcomes that are as extreme, in exact fractions."""
    flips = one_way + other_way
    lopsided = abs(2 * one_way - flips)
    exact = sum(
        (Fraction(comb(flips, k), 2**flips) for k in range(flips + 1) if abs(2 * k - flips) >= lopsided),
        Fraction(0),
    )
    assert mcnemar(one_way, other_way) == pytest.approx(float(exact), rel=1e-9)


def test_mcnemar_of_a_million_flips_does_not_overflow() -> None:
    """The p-value of a million flips is near the normal approximation."""
    assert mcnemar(500_000, 500_000) == 1.0
    assert mcnemar(499_000, 501_000) == pytest.approx(0.0456, abs=2e-4)
    assert mcnemar(0, 1_000_000) == 0.0
    assert mcnemar(400_000, 600_000) < 1e-300


@given(st.integers(0, 500), st.integers(0, 500))
def test_wilson_solves_its_equation(successes: int, more: int) -> None:
    """Both ends lie 1.96 standard errors from the rate, and the rate lies between them."""
    trials = successes + more
    interval = wilson(successes, trials)
    if interval is None:
        assert trials == 0
        return
    rate = successes / trials
    assert 0 <= interval.low <= rate <= interval.high <= 1
    for end in interval:
        assert (rate - end) ** 2 == pytest.approx(Z95**2 * end * (1 - end) / trials, abs=1e-9)


def test_wilson_matches_a_known_example() -> None:
    """The interval of 8 of 10 is 49 % to 94 %."""
    assert wilson(8, 10) == pytest.approx((0.4902, 0.9433), abs=1e-4)


@given(st.lists(scores, min_size=2, max_size=60))
def test_running_mean_equals_the_mean_of_all(values: list[float]) -> None:
    """Welford's mean and interval equal those computed from all values."""
    running = RunningMean()
    for value in values:
        running.add(value)
    half = Z95 * stdev(values) / sqrt(len(values))
    assert running.mean == pytest.approx(fmean(values), rel=1e-9, abs=1e-6)
    assert running.interval == pytest.approx(
        (fmean(values) - half, fmean(values) + half), rel=1e-6, abs=1e-3
    )


@given(small, small, small)
def test_rate_difference_is_that_of_paired_values(passing: int, failing: int, same: int) -> None:
    """The interval is that of the mean of +1, -1 and 0, with half a pair more in each of four cells."""
    pairs = passing + failing + same
    result = rate_difference(passing, failing, pairs)
    if result is None:
        assert pairs == 0
        return
    weights = {1.0: passing + 0.5, -1.0: failing + 0.5, 0.0: same + 1}
    mean = sum(value * weight for value, weight in weights.items()) / (pairs + 2)
    squares = sum(weight * (value - mean) ** 2 for value, weight in weights.items())
    half = Z95 * sqrt(squares) / (pairs + 2)
    difference, interval = result
    assert difference == pytest.approx((passing - failing) / pairs)
    assert interval == pytest.approx(
        (max(-1, min(difference, mean - half)), min(1, max(difference, mean + half))), rel=1e-9, abs=1e-7
    )


@given(small.filter(bool))
def test_an_interval_has_a_width_if_all_pairs_flip_or_none_does(pairs: int) -> None:
    """A few pairs prove little, even if they agree."""
    for flips in ((pairs, 0), (0, pairs), (0, 0)):
        result = rate_difference(*flips, pairs)
        assert result
        difference, interval = result
        assert interval.low <= difference <= interval.high
        assert interval.high - interval.low > 0
