"""The simulated evaluator: it fails only the wrong answers of simulated targets."""

import pytest

from executor.evaluators.simulated import REASON, SIMULATED
from executor.targets.simulated import WRONG
from tests.unit.executor.evaluators.scored import judge


@pytest.mark.parametrize(("output", "passed"), [(WRONG, False), ("anything else", True), ("", True)])
async def test_only_the_wrong_answer_fails(output, passed):
    """The expected value is not compared, and the reason states that no evaluator was called."""
    score = await judge("simulated", output, "expected")
    assert (score.passed, score.score, score.reason) == (passed, float(passed), REASON)


def test_the_fields_of_the_simulated_evaluator_are_required_of_every_case():
    """A dry run finds a missing column as the real run would; none is required otherwise."""
    assert SIMULATED.placeholders({"fields": ["rubric", "expected"]}) == {"rubric", "expected"}
    assert SIMULATED.placeholders({}) == frozenset()


def test_options_of_the_real_evaluator_are_refused():
    """The error names the simulated evaluator and its only option."""
    with pytest.raises(ValueError, match="the simulated evaluator has no option 'model'; known: fields"):
        SIMULATED.check({"model": "x"})
