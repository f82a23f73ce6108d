"""Models as targets and judges, over a real connection, with a simulated provider at its other end."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest

from eventlog import payloads as p
from executor.contract import (
    CallFault,
    ExecutionEnvironment,
    Overloaded,
    Permanent,
    RateLimited,
    ScoringRequest,
    TargetRequest,
    Transient,
    Unreachable,
)
from executor.registry import make_evaluator, make_target, parse_evaluator, parse_target
from tests.provider import provider

KEY = "sk-canary-0123456789abcdef"
BOTH = ["anthropic", "openai"]
MODELS = {"anthropic": "claude-haiku-4-5", "openai": "gpt-4o-mini"}


def environment(sim: Any, key: str = KEY, slots: int = 4) -> ExecutionEnvironment:
    """Point both SDKs at the simulator, as a deployment would."""
    return ExecutionEnvironment(
        slots=slots,
        environ={
            "ANTHROPIC_API_KEY": key,
            "OPENAI_API_KEY": key,
            "ANTHROPIC_BASE_URL": sim.base_url,
            "OPENAI_BASE_URL": f"{sim.base_url}/v1",
        },
    )


async def ask(sim: Any, name: str, prompt: str = "Capital of France?", **options: Any) -> Any:
    """Make one call; the reply or the error never holds the key."""
    key = options.pop("key", KEY)
    spec = parse_target({"type": name, "model": MODELS[name], **options})
    target = make_target(spec, environment(sim, key))
    try:
        got: Any = await target.call(TargetRequest("b.1", prompt, p.Case(id="c"), {}, timeout=10))
    except CallFault as fault:
        got = fault
    await target.aclose()
    assert key not in f"{got} {got!r} {target!r}"
    return got


@pytest.mark.parametrize("name", BOTH)
async def test_an_answer_streamed_or_not_is_the_same(name):
    """Text, tokens and cost are the same, streamed or not."""
    async with provider() as sim:
        whole, streamed = await ask(sim, name), await ask(sim, name, stream=True)
    assert whole.answer.output
    assert whole.answer.usage.output_tokens > 0
    assert whole.answer.cost_usd > 0
    for field in ("output", "usage", "cost_usd"):
        assert getattr(whole.answer, field) == getattr(streamed.answer, field)


@pytest.mark.parametrize("name", BOTH)
async def test_limits_are_read_from_every_reply(name):
    """The provider's advertised limits are returned with the answer."""
    async with provider(rpm=600) as sim:
        reply = await ask(sim, name)
    assert reply.limits.requests.limit == 600


@pytest.mark.parametrize("name", BOTH)
async def test_a_wrong_key_a_wrong_model_and_a_long_prompt_fail_permanently(name):
    """Each error has the remedy."""
    async with provider(keys=[KEY], models=list(MODELS.values()), context_tokens=500) as sim:
        refused = await ask(sim, name, key="sk-wrong-0123456789abcdef")
        unknown = await ask(sim, name, model="no-such-model")
        too_long = await ask(sim, name, "word " * 4_000)
    assert [(type(each), each.kind) for each in (refused, unknown, too_long)] == [
        (Permanent, "authentication"),
        (Permanent, "model_not_found"),
        (Permanent, "prompt_too_long"),
    ]
    assert "_API_KEY was refused" in refused.message
    assert "no-such-model" in unknown.message
    assert "shorten it" in too_long.message


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("name", "fault", "class_"),
    [
        ("anthropic", "overloaded", Overloaded),
        ("openai", "overloaded", Unreachable),
        ("anthropic", "server_error", Unreachable),
        ("openai", "server_error", Unreachable),
        ("anthropic", "reset_before", Unreachable),
        ("openai", "reset_before", Unreachable),
    ],
)
async def test_each_failure_has_its_class(name, fault, class_, stream):
    """Overload is a rate limit, a server error counts against the lane."""
    async with provider(**{fault: 1.0}) as sim:
        got = await ask(sim, name, stream=stream)
    assert isinstance(got, class_), got


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("fault", ["reset_midway", "truncated", "html"])
async def test_half_a_reply_or_garbage_is_no_answer(name, fault):
    """A truncated or invalid body is a transient error."""
    async with provider(**{fault: 1.0}) as sim:
        got = await ask(sim, name)
    assert isinstance(got, Transient)


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("fault", ["stream_error", "stream_broken"])
async def test_a_stream_that_ends_badly_is_no_answer(name, fault):
    """None of it is recorded, and the error is transient."""
    async with provider(**{fault: 1.0}) as sim:
        got = await ask(sim, name, stream=True)
    assert isinstance(got, RateLimited | Transient)


@pytest.mark.parametrize("name", BOTH)
async def test_a_rate_limit_is_reported_with_its_retry_after(name):
    """The second call of a slow minute gets a Retry-After, and the SDK does not retry."""
    async with provider(rpm=1) as sim:
        replies = [await ask(sim, name) for _ in range(3)]
        calls = sim.stats.of({"anthropic": "/v1/messages", "openai": "/v1/chat/completions"}[name], 429)
    limited = [each for each in replies if isinstance(each, RateLimited)]
    assert limited
    assert calls == len(limited)
    assert limited[0].retry_after
    assert limited[0].retry_after > timedelta(seconds=1)


async def test_one_client_serves_all_slots_at_once():
    """There are as many connections as slots, so no call waits for a connection."""
    async with provider(latency=0.2) as sim:
        target = make_target(parse_target("anthropic/claude-haiku-4-5"), environment(sim, slots=20))
        requests = [TargetRequest(f"b.{i}", f"{i}?", p.Case(id="c"), {}, timeout=10) for i in range(20)]
        replies = await asyncio.gather(*map(target.call, requests))
        await target.aclose()
        assert sim.stats.of("/v1/messages", 200) == 20
    assert all(reply.answer.output for reply in replies)


@pytest.mark.parametrize("name", BOTH)
async def test_a_judge_scores_over_a_real_connection(name):
    """The provider fills in the verdict's schema, on the configured scale."""
    spec = parse_evaluator(
        {
            "type": "llm_judge",
            "model": f"{name}/{MODELS[name]}",
            "rubric": "Is {output} right?",
            "scale": [1, 5],
        }
    )
    async with provider(pass_rate=1.0) as sim:
        judge = make_evaluator(spec, environment(sim))
        score = await judge.score(ScoringRequest(p.Case(id="c", input="?"), "Paris", {"input": "?"}))
        await judge.aclose()
    assert score.passed is True
    assert 0.5 <= score.score <= 1
    assert " of 5: " in score.reason
    assert score.usage.total > 0
    assert score.cost_usd > 0
