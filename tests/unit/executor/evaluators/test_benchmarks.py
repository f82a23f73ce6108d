"""Published results, scored again: the evaluators must come to the published numbers."""

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, ScoringRequest
from executor.registry import make_evaluator, parse_evaluator

DATA = Path(__file__).parents[5] / "shared" / "data"
pytestmark = pytest.mark.skipif(not DATA.is_dir(), reason="the published results are not here")


async def passes(evaluator: dict[str, JsonValue], answers: list[tuple[str, str]]) -> int:
    judge = make_evaluator(parse_evaluator(evaluator), ExecutionEnvironment())
    scores = [await judge.score(ScoringRequest(p.Case(id="c", expected=e), o, {})) for o, e in answers]
    return sum(score.passed is True for score in scores)


def rows(path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (DATA / "gsm8k" / path).read_text().splitlines()]


@pytest.mark.parametrize(("model", "right"), [("6b_finetuning", 45), ("175b_finetuning", 65)])
async def test_grade_school_math(model, right):
    """Numbers cut out of worked solutions: as many are right as was published."""
    cases = rows("test_first200.jsonl")
    solutions = rows("example_model_solutions_first200_finetuning.jsonl")
    cuts: dict[str, JsonValue] = {"extract": r"A:\s*(.+)$", "expected_extract": r"####\s*(.+)$"}
    pairs = [(s[model]["solution"], c["answer"]) for c, s in zip(cases, solutions, strict=True)]
    assert (await passes({"type": "numeric", **cuts}, pairs), len(pairs)) == (right, 200)


@pytest.mark.parametrize(
    ("task", "percent"),
    [("boolean_expressions", 88.4), ("date_understanding", 63.6), ("object_counting", 45.2)],
)
async def test_big_bench_hard(task, percent):
    """Short answers compared as they are: the published accuracy, to the digit."""
    (path,) = (DATA / "bbh").glob(f"{task}*-255000.json")
    pairs = [(row["prediction"], row["target"]) for row in json.loads(path.read_text())["outputs"]]
    assert 100 * await passes({"type": "exact"}, pairs) / len(pairs) == pytest.approx(percent)
