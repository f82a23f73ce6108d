"""The fold of pairs against counting."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from projections.queries.export import ComparedPair
from scoreline.reports.compare_fold import BatchComparison
from tests.unit.scoreline.reports.paired_scores import scores

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
