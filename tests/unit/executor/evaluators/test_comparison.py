"""What all evaluators that compare share; those of `regex` and `numeric` by their options."""

import pytest

from executor.contract import Permanent
from executor.registry import evaluator_type
from tests.unit.executor.evaluators.scored import judge


@pytest.mark.parametrize(
    ("kind", "output", "expected", "options", "passed"),
    [
        ("regex", "id: 17", None, {"pattern": r"^id: \d+$"}, True),
        ("regex", "id: x", None, {"pattern": r"^id: \d+$"}, False),
        ("regex", "ID: 17", None, {"pattern": r"^id: \d+$", "ignore_case": True}, True),
        ("regex", "abc", "a.c", {}, True),
        ("numeric", "$1,234.50", 1234.5, {}, True),
        ("numeric", "1234.5.", "1,234.50", {}, True),
        ("numeric", "50 %", "50", {}, True),
        ("numeric", "-3", "3", {}, False),
        ("numeric", "3.1", "3", {"tolerance": 0.2}, True),
        ("numeric", "3.3", "3", {"tolerance": 0.2}, False),
        ("numeric", "101", "100", {"relative_tolerance": 0.01}, True),
        ("numeric", "102", "100", {"relative_tolerance": 0.01}, False),
        ("numeric", "9007199254740993", "9007199254740992", {}, False),
        ("numeric", "about 5", "5", {}, False),
        ("numeric", "3/4", "0.75", {}, False),
    ],
)
async def test_a_comparison(kind, output, expected, options, passed):
    """Each option of each evaluator makes the difference that it should."""
    score = await judge(kind, output, expected, **options)
    assert (score.passed, score.score) == (passed, float(passed))
    assert bool(score.reason) is not passed


async def test_a_reason_quotes_no_more_than_a_line():
    """However long the output, the reason stays short."""
    assert len((await judge("exact", "x" * 100_000, "y")).reason) < 300


@pytest.mark.parametrize("kind", ["exact", "contains", "regex", "numeric"])
async def test_a_case_without_an_expected_value_is_a_fault_not_a_score(kind):
    """Without a value to compare with, the evaluator cannot score the answer."""
    with pytest.raises(Permanent, match="has no expected value"):
        await judge(kind, "1")


def test_an_evaluator_declares_that_it_needs_an_expected_value():
    """A case that its evaluator could not score is refused at submission."""
    assert evaluator_type("exact").needs_expected
    assert evaluator_type("numeric").needs_expected
    for kind, option in (("contains", "value"), ("regex", "pattern")):
        assert not evaluator_type(kind).needs_expected
        assert evaluator_type(kind).placeholders({}) == {"expected"}
        assert evaluator_type(kind).placeholders({option: "x"}) == frozenset()
