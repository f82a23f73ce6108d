"""The simulator as the official Anthropic SDK sees it."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any

import httpx2
import pytest

from scoreline.provider_sim.simulator import Simulator
from tests.extras import require
from tests.provider import provider

require("anthropic")


def sdk() -> Any:
    """Import the SDK, which takes seconds, only where its tests run."""
    return import_module("anthropic")


ASK: dict[str, Any] = {
    "model": "simulated-large",
    "max_tokens": 300,
    "messages": [{"role": "user", "content": "Why is the sky blue?"}],
}
VERDICT = {
    "type": "object",
    "properties": {
        "passed": {"type": "boolean"},
        "score": {"type": "integer", "minimum": 1, "maximum": 5},
        "reason": {"type": "string"},
    },
    "required": ["passed", "score", "reason"],
    "additionalProperties": False,
}
TOOL = {"name": "verdict", "description": "Judge.", "input_schema": VERDICT}


@asynccontextmanager
async def asking(key: str = "sim", **settings: object) -> AsyncIterator[tuple[Simulator, Any]]:
    async with (
        provider(**settings) as sim,
        sdk().AsyncAnthropic(api_key=key, base_url=sim.base_url, max_retries=0) as client,
    ):
        yield sim, client


async def test_a_message_is_answered():
    """The reply has an id, usage, a stop reason and a request id."""
    async with asking(rpm=6_000) as (sim, client):
        raw = await client.messages.with_raw_response.create(**ASK)
        message = await raw.parse()
        again = await client.messages.create(**ASK)
    assert message.id.startswith("msg_")
    assert message.model == "simulated-large"
    assert message.stop_reason == "end_turn"
    assert message.usage.input_tokens > 0
    assert message.usage.output_tokens > 0
    assert message.content == again.content
    assert message._request_id.startswith("req_")
    assert raw.headers["anthropic-ratelimit-requests-limit"] == "6000"
    assert sim.stats.of("/v1/messages", 200) == 2
    assert sim.stats.bodies[-1]["messages"] == ASK["messages"]


async def test_a_streamed_message_is_the_same_message():
    """All events arrive in order and add up to the non-streamed message."""
    async with asking() as (_, client):
        whole = await client.messages.create(**ASK)
        kinds = [event.type async for event in await client.messages.create(**ASK, stream=True)]
        async with client.messages.stream(**ASK) as stream:
            final = await stream.get_final_message()
    assert final.content[0].text == whole.content[0].text
    assert final.usage.output_tokens == whole.usage.output_tokens
    assert final.stop_reason == "end_turn"
    assert kinds[:3] == ["message_start", "content_block_start", "content_block_delta"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]


async def test_a_forced_tool_is_used():
    """The tool's input matches its schema, streamed or not."""
    form = {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "verdict"}}
    async with asking(pass_rate=1) as (_, client):
        message = await client.messages.create(**ASK, **form)
        async with client.messages.stream(**ASK, **form) as stream:
            streamed = await stream.get_final_message()
    block = message.content[0]
    assert (message.stop_reason, block.type, block.name) == ("tool_use", "tool_use", "verdict")
    assert block.input["passed"] is True
    assert 1 <= block.input["score"] <= 5
    assert streamed.content[0].input == block.input


async def test_a_schema_is_answered_in_json():
    """Structured output is a text that parses as JSON."""
    async with asking(pass_rate=0) as (_, client):
        message = await client.messages.create(
            **ASK, output_config={"format": {"type": "json_schema", "schema": VERDICT}}
        )
    assert json.loads(message.content[0].text)["passed"] is False


@pytest.mark.parametrize(
    ("settings", "change", "error"),
    [
        ({"rpm": 0.5, "burst_seconds": 0.001}, {}, "RateLimitError"),
        ({"overloaded": 1}, {}, "OverloadedError"),
        ({"server_error": 1}, {}, "InternalServerError"),
        ({"keys": ["another"]}, {}, "AuthenticationError"),
        ({"models": ["another"]}, {}, "NotFoundError"),
        ({"forbidden_models": ["simulated-large"]}, {}, "PermissionDeniedError"),
        ({"context_tokens": 5}, {}, "BadRequestError"),
        ({}, {"messages": []}, "BadRequestError"),
        ({"reset_before": 1}, {}, "APIConnectionError"),
        ({"reset_midway": 1}, {}, "APIConnectionError"),
    ],
)
async def test_errors_are_what_the_sdk_makes_of_the_real_ones(settings, change, error):
    """Each error has the SDK's exception type."""
    async with asking(**settings) as (_, client):
        if error == "RateLimitError":
            await client.messages.create(**ASK)
        with pytest.raises(getattr(sdk(), error)) as caught:
            await client.messages.create(**{**ASK, **change})
    assert type(caught.value).__name__ == error
    if error == "RateLimitError":
        assert int(caught.value.response.headers["retry-after"]) > 100
        assert caught.value.body["error"]["type"] == "rate_limit_error"


async def test_a_prompt_too_long_is_refused_in_the_words_of_the_api():
    """The message can be matched as the real one is."""
    async with asking(context_tokens=5) as (_, client):
        with pytest.raises(sdk().BadRequestError, match=r"prompt is too long: \d+ tokens > 5 maximum"):
            await client.messages.create(**ASK)


async def test_keys_are_accepted_either_way_and_one_is_needed():
    """A bearer token or the header of the API is accepted; an empty key is refused."""
    async with provider(keys=["good"]) as sim, httpx2.AsyncClient(base_url=sim.base_url) as client:
        version = {"anthropic-version": "2023-06-01"}
        for headers, status in (
            ({"authorization": "Bearer good"}, 200),
            ({"x-api-key": "good"}, 200),
            ({"x-api-key": "bad"}, 401),
            ({}, 401),
        ):
            reply = await client.post("/v1/messages", json=ASK, headers=headers | version)
            assert reply.status_code == status
        unversioned = await client.post("/v1/messages", json=ASK, headers={"x-api-key": "good"})
    assert unversioned.status_code == 400
    assert "anthropic-version" in unversioned.json()["error"]["message"]


async def test_a_stream_may_end_badly():
    """An error event, a reset and an early end reach the SDK's caller, the last as httpx raises it."""
    async with asking(stream_error=1) as (sim, client):
        with pytest.raises(sdk().APIStatusError, match="overloaded_error"):
            await _drained(client)
        sim.change(stream_error=0, reset_midway=1)
        with pytest.raises(httpx2.ReadError):
            await _drained(client)
        sim.change(reset_midway=0, stream_broken=1)
        with pytest.raises(httpx2.RemoteProtocolError, match="incomplete chunked read"):
            await _drained(client)


async def _drained(client: Any) -> None:
    async for _ in await client.messages.create(**ASK, stream=True):
        pass


async def test_garbage_with_a_good_status_is_garbage():
    """A web page, which the SDK returns as text, and truncated JSON."""
    async with asking(html=1) as (sim, client):
        assert (await client.messages.create(**ASK)).startswith("<!DOCTYPE html>")
        sim.change(html=0, truncated=1)
        with pytest.raises(json.JSONDecodeError):
            await client.messages.create(**ASK)


async def test_models_are_listed():
    """The list has the configured models."""
    async with asking(models=["a", "b"]) as (_, client):
        assert [model.id async for model in client.models.list()] == ["a", "b"]
