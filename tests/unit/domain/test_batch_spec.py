"""The batch spec: what it derives for executor, coordinator and alerts alike."""

from dataclasses import replace
from datetime import timedelta

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec

SPEC = BatchSpec(
    "batch",
    (TargetSpec("simulated", "simulated"),),
    timeout=50.0,
    evaluators=(
        EvaluatorSpec("exact", "exact", timeout=7.0),
        EvaluatorSpec("llm_judge", "judge", timeout=30.0),
    ),
)


@pytest.mark.parametrize(
    ("spec", "seconds"),
    [
        pytest.param(SPEC, 80, id="evaluators run concurrently: the slowest decides"),
        pytest.param(replace(SPEC, max_concurrency=4), 87, id="one after the other: their sum"),
        pytest.param(replace(SPEC, evaluators=()), 50, id="no evaluator: one call of the target"),
    ],
)
def test_the_attempt_deadline_follows_the_way_evaluators_are_called(spec: BatchSpec, seconds: int):
    """Every component reads this property: the executor's limit, hung executors, stuck evaluations."""
    assert spec.attempt_deadline == timedelta(seconds=seconds)
