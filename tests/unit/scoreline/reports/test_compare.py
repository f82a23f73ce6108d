"""Statistics of a comparison against brute force, and the fold of pairs against counting."""

from fractions import Fraction
from math import comb, sqrt
from statistics import fmean, stdev
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from projections.queries.export import ComparedPair
from scoreline.command_error import CommandError
from scoreline.reports.compare_fold import BatchComparison
from scoreline.reports.compare_statistics import Z95, RunningMean, mcnemar, rate_difference, wilson
from scoreline.reports.compare_variants import pair_variants
from scoreline.reports.labels import VariantLabel

small = st.integers(0, 120)
scores = st.floats(-1e6, 1e6)


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
    """The interval equals that of the mean of +1, -1 and 0, but for the degree of freedom."""
    pairs = passing + failing + same
    result = rate_difference(passing, failing, pairs)
    if result is None:
        assert pairs == 0
        return
    values = [1.0] * passing + [-1.0] * failing + [0.0] * same
    mean = fmean(values)
    spread = sqrt(sum((value - mean) ** 2 for value in values)) / pairs
    difference, interval = result
    assert difference == pytest.approx(mean)
    assert interval == pytest.approx(
        (max(-1, mean - Z95 * spread), min(1, mean + Z95 * spread)), rel=1e-9, abs=1e-7
    )


verdicts = st.sampled_from(["passed", "failed", "dead_letter", "cancelled", None])
sides = st.one_of(st.none(), st.tuples(verdicts, st.one_of(st.none(), scores)))


def paired(number: int, left: tuple[Any, ...] | None, right: tuple[Any, ...] | None) -> ComparedPair:
    there = [(None, None, None) if side is None else (f"e{number}", *side) for side in (left, right)]
    return ComparedPair(f"case-{number}", 1, 1, *there[0], *there[1])


@given(st.lists(st.tuples(sides, sides).filter(any), max_size=60), st.integers(0, 5))
def test_fold_equals_a_count_over_all_pairs(pairs: list[Any], limit: int) -> None:
    """The counters hold for any pairs and any limit of kept flips."""
    comparison = BatchComparison(limit)
    for number, (left, right) in enumerate(pairs):
        comparison.add(paired(number, left, right))
    both = [(left[0], right[0]) for left, right in pairs if left and right]
    ended = [pair for pair in both if None not in pair]
    assert comparison.newly_failing == sum(left == "passed" != right for left, right in ended)
    assert comparison.newly_passing == sum(left != "passed" == right for left, right in ended)
    assert (comparison.judged, comparison.unjudged) == (len(ended), len(both) - len(ended))
    assert comparison.lost == sum(both.count(("passed", other)) for other in ("dead_letter", "cancelled"))
    assert comparison.left.only_here == sum(right is None for _, right in pairs)
    assert comparison.seen == len(pairs)
    assert len(comparison.failing) == min(limit, comparison.newly_failing)
    assert comparison.left.passed == sum(left is not None and left[0] == "passed" for left, _ in pairs)


def labels(*names: str) -> list[VariantLabel]:
    return [VariantLabel(number, *name.split("/")) for number, name in enumerate(names)]


@pytest.mark.parametrize(
    ("left", "right", "by", "numbers"),
    [
        (("a/p",), ("b/p",), "order", [(0, 0)]),
        (("a/p", "b/p"), ("b/p", "a/p"), "target and prompt", [(0, 1), (1, 0)]),
        (("a/p", "b/p"), ("c/p", "a/p"), "order", [(0, 0), (1, 1)]),
        (("a/p", "b/p"), ("b/p",), "target and prompt", [(1, 0)]),
        (("a/p", "b/p"), ("b/q",), "target", [(1, 0)]),
        (("a/p", "a/q"), ("c/q",), "prompt", [(1, 0)]),
        ((), ("b/p",), "order", [(0, 0)]),
    ],
)
def test_variants_are_paired_by_target_and_prompt_or_by_order(
    left: tuple[str, ...], right: tuple[str, ...], by: str, numbers: list[tuple[int, int]]
) -> None:
    """Order decides only where both batches have equally many variants that do not all match."""
    pairing = pair_variants(labels(*left), labels(*right))
    assert (pairing.by, pairing.numbers) == (by, numbers)


def test_variants_that_have_nothing_in_common_are_not_compared() -> None:
    """Batches without a common target or prompt raise a problem with the names of both."""
    with pytest.raises(CommandError, match="no variant in common: a, b there, c here"):
        pair_variants(labels("a/p", "b/p"), labels("c/p"))
