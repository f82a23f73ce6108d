"""The `contains` evaluator: all of the texts, or any of them, in the output."""

import pytest

from tests.unit.executor.evaluators.scored import judge


@pytest.mark.parametrize(
    ("output", "expected", "options", "passed"),
    [
        ("the answer is 42.", "42", {}, True),
        ("the answer is 42.", "43", {}, False),
        ("red and blue", ["red", "blue"], {}, True),
        ("red and blue", None, {"value": ["red", "green"]}, False),
        ("red and blue", None, {"value": ["red", "green"], "match": "any"}, True),
        ("red", None, {"value": ["green"], "match": "any"}, False),
        ("RED", None, {"value": "red", "ignore_case": True}, True),
        ("red", ["red", "blue"], {}, False),
        ("red", "blue", {"value": "red"}, True),
        ("[1, 2]", [1, 2], {}, False),
        ("so [1,2] it is", [1, 2], {}, True),
    ],
)
async def test_an_output_passes_if_it_contains_the_texts(output, expected, options, passed):
    """`value` replaces the expected value; a list of texts is several, any other list is one JSON text."""
    score = await judge("contains", output, expected, **options)
    assert (score.passed, score.score) == (passed, float(passed))


async def test_the_reason_names_the_first_five_missing_texts():
    """Texts that were found are left out."""
    score = await judge("contains", "a b", value=["a", "c", "d", "e", "f", "g", "h"])
    assert score.reason == "not in the output: 'c', 'd', 'e', 'f', 'g'"
