"""A Python function as an evaluator."""

from pathlib import Path

import pytest

from domain.batch_spec import EvaluatorSpec
from eventlog import payloads as p
from executor.contract import Permanent, ScoringRequest
from executor.evaluators.python import PYTHON as PYTHON_EVALUATOR
from tests.integration.executor.python_functions import environment


@pytest.mark.parametrize(
    ("function", "output", "score", "passed"),
    [
        ("same", "abcd", 1.0, True),
        ("same", "abc", 0.0, False),
        ("part", "abc", 0.75, True),
        ("part", "a", 0.25, False),
        ("reported", "x", 0.2, True),
        ("only_passed", "x", 0.0, False),
    ],
)
async def test_a_function_is_an_evaluator(workdir, function, output, score, passed):
    """It returns a bool, a number or a dict; a number passes from the threshold on."""
    judged = await _judge(workdir, function, output)
    assert (judged.evaluator, judged.score, judged.passed) == ("mine", score, passed)


@pytest.mark.parametrize("function", ["silly", "nan", "broken"])
async def test_an_invalid_score_is_an_error(workdir, function):
    """An evaluator that fails does not score the answer."""
    with pytest.raises(Permanent):
        await _judge(workdir, function, "x")


async def _judge(workdir: Path, function: str, output: str) -> p.Score:
    spec = EvaluatorSpec(type="python", name="mine", options={"function": f"functions:{function}"})
    evaluator = PYTHON_EVALUATOR.make(spec.name, spec.options, environment(workdir))
    try:
        return await evaluator.score(ScoringRequest(p.Case(id="c", expected="abcd"), output, {}))
    finally:
        await evaluator.aclose()
