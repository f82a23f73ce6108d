"""Scores of evaluators for tests."""

from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, ScoringRequest
from executor.registry import evaluator_type


async def judge(kind: str, output: str, expected=None, **options) -> p.Score:
    evaluator = evaluator_type(kind).make("e", options, ExecutionEnvironment())
    case = p.Case(id="c", expected=expected)
    try:
        return await evaluator.score(ScoringRequest(case, output, {}))
    finally:
        await evaluator.aclose()
