"""The `exact` evaluator: equal up to the differences that its options ignore."""

import pytest

from tests.unit.executor.evaluators.scored import judge


@pytest.mark.parametrize(
    ("output", "expected", "options", "passed"),
    [
        (" yes\n", "yes", {}, True),
        (" yes", "yes", {"strip": False}, False),
        ("YES", "yes", {}, False),
        ("YES", "yes", {"ignore_case": True}, True),
        ('{"a":1}', {"a": 1}, {}, True),
        ("A: 1\nA: 2", "2", {"extract": r"^A: (.+)$"}, True),
        ("ab", "abab", {"extract": "ab", "expected_extract": "ab"}, True),
        ("STRASSE", "straße", {"ignore_case": True}, True),
    ],
)
async def test_an_output_passes_if_it_is_the_expected_value(output, expected, options, passed):
    """White space at the ends is ignored unless `strip` is off, case only with `ignore_case`."""
    score = await judge("exact", output, expected, **options)
    assert (score.passed, score.score) == (passed, float(passed))


async def test_a_difference_is_named_with_both_values():
    """The reason quotes the output as it is, not as it was compared; a pass has no reason."""
    assert (await judge("exact", " No ", "yes", ignore_case=True)).reason == "expected 'yes', got ' No '"
    assert not (await judge("exact", "yes", "yes")).reason
