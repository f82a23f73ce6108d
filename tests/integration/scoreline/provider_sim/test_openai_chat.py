"""The simulator as the official OpenAI SDK sees it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import pytest

from scoreline.provider_sim.simulator import Simulator
from tests.extras import require
from tests.provider import provider

require("openai")


def sdk() -> Any:
    """Import the SDK, which takes seconds, only where its tests run."""
    return import_module("openai")


ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Why is the sky blue?"}]}
SCHEMA = {"type": "object", "properties": {"grade": {"enum": ["C", "I"]}}, "required": ["grade"]}


@asynccontextmanager
async def asking(**settings: object) -> AsyncIterator[tuple[Simulator, Any]]:
    async with (
        provider(**settings) as sim,
        sdk().AsyncOpenAI(api_key="sim", base_url=f"{sim.base_url}/v1", max_retries=0) as client,
    ):
        yield sim, client


async def test_a_completion_and_its_stream_have_the_same_content():
    """Chunks add up; the last one has the usage if it was requested."""
    async with asking(rpm=600, tpm=600_000) as (sim, client):
        raw = await client.chat.completions.with_raw_response.create(**ASK)
        whole = raw.parse()
        options = {"stream": True, "stream_options": {"include_usage": True}}
        chunks = [chunk async for chunk in await client.chat.completions.create(**ASK, **options)]
    assert whole.choices[0].finish_reason == "stop"
    assert (
        "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
        == whole.choices[0].message.content
    )
    assert chunks[-1].usage == whole.usage
    assert whole.usage.total_tokens == whole.usage.prompt_tokens + whole.usage.completion_tokens
    assert raw.headers["x-ratelimit-limit-requests"] == "600"
    assert raw.headers["x-ratelimit-reset-tokens"].endswith("ms")
    assert sim.stats.of("/v1/chat/completions", 200) == 2


async def test_functions_are_called_and_schemas_answered():
    """This holds streamed and not streamed."""
    tool = {"type": "function", "function": {"name": "grade", "parameters": SCHEMA}}
    choice = {"type": "function", "function": {"name": "grade"}}
    form = {"type": "json_schema", "json_schema": {"name": "grade", "schema": SCHEMA}}
    async with asking(pass_rate=1) as (_, client):
        called = await client.chat.completions.create(**ASK, tools=[tool], tool_choice=choice)
        streamed = await client.chat.completions.create(
            **ASK, tools=[tool], tool_choice=choice, stream=True
        )
        calls = [chunk.choices[0].delta.tool_calls async for chunk in streamed]
        formed = await client.chat.completions.create(**ASK, response_format=form)
    call = called.choices[0].message.tool_calls[0]
    assert (called.choices[0].finish_reason, call.function.name) == ("tool_calls", "grade")
    assert json.loads(call.function.arguments) == {"grade": "C"}
    assert "".join(each[0].function.arguments for each in calls if each) == call.function.arguments
    assert json.loads(formed.choices[0].message.content) == {"grade": "C"}


@pytest.mark.parametrize(
    ("settings", "change", "error", "code"),
    [
        ({"keys": ["another"]}, {}, "AuthenticationError", "invalid_api_key"),
        ({"models": ["another"]}, {}, "NotFoundError", "model_not_found"),
        ({"context_tokens": 5}, {}, "BadRequestError", "context_length_exceeded"),
        ({}, {"messages": []}, "BadRequestError", "empty_array"),
        ({"overloaded": 1}, {}, "InternalServerError", None),
        ({"server_error": 1}, {}, "InternalServerError", None),
        ({"reset_before": 1}, {}, "APIConnectionError", None),
        ({"concurrency": 1, "latency": 1_000}, {}, "RateLimitError", "rate_limit_exceeded"),
    ],
)
async def test_errors_are_what_the_sdk_makes_of_the_real_ones(settings, change, error, code):
    """Each error has the SDK's exception type and code."""
    async with asking(**settings) as (sim, client):
        if error == "RateLimitError":
            sim.stats.began()  # another request is in flight
        with pytest.raises(getattr(sdk(), error)) as caught:
            await client.chat.completions.create(**{**ASK, **change})
    assert type(caught.value).__name__ == error
    assert caught.value.code == code


async def test_a_stream_may_end_with_an_error():
    """The SDK raises it."""
    async with asking(stream_error=1) as (_, client):
        with pytest.raises(sdk().APIError, match="had an error"):
            async for _ in await client.chat.completions.create(**ASK, stream=True):
                pass


async def test_models_are_listed():
    """The list is in OpenAI's format."""
    async with asking(models=["a", "b"]) as (_, client):
        assert [model.id async for model in client.models.list()] == ["a", "b"]
