"""Judges for tests."""

import json
from typing import Any

import httpx2

from eventlog import payloads as p
from executor.contract import (
    ExecutionEnvironment,
    ScoringRequest,
)
from executor.evaluators.llm_judge import LlmJudge, LlmJudgeType

KEY = "sk-canary-0123456789abcdef"


ENVIRON = {"ANTHROPIC_API_KEY": KEY, "OPENAI_API_KEY": KEY, "DEEPSEEK_API_KEY": KEY}


RUBRIC = "The question: {input}\nRight is: {expected}\nThe answer: {output}\nIs it right?"


ANTHROPIC, OPENAI, DEEPSEEK = "anthropic/claude-haiku-4-5", "openai/gpt-4o-mini", "deepseek/deepseek-chat"


def reply_with(model: str, verdict: object) -> dict[str, Any]:
    """Return a provider's reply that holds a verdict."""
    if model.startswith("anthropic"):
        used = {"type": "tool_use", "id": "t", "name": "verdict", "input": verdict}
        usage = {"input_tokens": 1_000, "output_tokens": 100}
        return {"content": [used], "stop_reason": "tool_use", "usage": usage}
    text = verdict if isinstance(verdict, str) else json.dumps(verdict)
    choice = {"finish_reason": "stop", "message": {"role": "assistant", "content": text}}
    return {"choices": [choice], "usage": {"prompt_tokens": 1_000, "completion_tokens": 100}}


def judge(
    model: str, reply: object, *, status: int = 200, seen: list[Any] | None = None, **options: Any
) -> LlmJudge:
    def handler(request: httpx2.Request) -> httpx2.Response:
        if seen is not None:
            seen.append(json.loads(request.content))
        return httpx2.Response(status, json=reply, headers={"retry-after": "4"})

    made = LlmJudgeType(transport=httpx2.MockTransport(handler))
    here = ExecutionEnvironment(slots=2, environ=ENVIRON)
    return made.make("polite", {"model": model, "rubric": RUBRIC, **options}, here)


def judged(output: str = "Paris", **fields: Any) -> ScoringRequest:
    case = p.Case(id="c", input="Capital of France?", expected="Paris")
    return ScoringRequest(case, output, {"input": case.input, "expected": case.expected, **fields})


async def score(evaluator: LlmJudge, material: ScoringRequest | None = None) -> p.Score:
    try:
        return await evaluator.score(material or judged())
    finally:
        await evaluator.aclose()
