"""The part of an answer that is compared."""

import pytest

from executor.contract import Permanent
from tests.unit.executor.evaluators.scored import judge


async def test_an_output_without_the_pattern_is_a_failed_score_with_a_reason():
    """The reason quotes the pattern and the output."""
    score = await judge("exact", "no idea", "1", extract=r"A: (.+)$")
    assert (score.passed, score.score) == (False, 0.0)
    assert score.reason == r"'A: (.+)$' does not match the output: 'no idea'"


@pytest.mark.parametrize("kind", ["exact", "contains", "regex", "numeric"])
async def test_an_expected_value_without_the_pattern_is_a_fault_not_a_score(kind):
    """A mistake in the spec or the dataset does not count as a wrong answer."""
    with pytest.raises(Permanent, match="does not match the expected value: 'one'") as caught:
        await judge(kind, "no idea", "one", extract=r"A: (.+)$", expected_extract=r"#### (.+)$")
    assert caught.value.kind == "bad_expected"
