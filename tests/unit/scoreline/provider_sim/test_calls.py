"""The processing of one call in the simulator, in virtual time."""

import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scoreline.provider_sim.anthropic_messages import AnthropicMessages
from scoreline.provider_sim.calls import CallHandler
from scoreline.provider_sim.http_messages import HttpReply, HttpRequest
from scoreline.provider_sim.openai_chat import OpenAIChat
from scoreline.provider_sim.provider_api import ProviderApi
from scoreline.provider_sim.settings import SimulatorSettings, changed

START = datetime(2026, 1, 1, tzinfo=UTC)


class Harness:
    """Calls with a clock that the test advances."""

    def __init__(self, **settings: object) -> None:
        self.now = 0.0
        self.calls = CallHandler(
            changed(SimulatorSettings(), settings),
            clock=lambda: self.now,
            utc_now=lambda: START + timedelta(seconds=self.now),
        )

    async def ask(self, api: ProviderApi | None = None, **change: object) -> HttpReply:
        params = {"model": "m", "max_tokens": 99, "messages": [{"role": "user", "content": "Hi"}]} | change
        headers = {"x-api-key": "k", "anthropic-version": "1"}
        body = io.BytesIO(json.dumps(params).encode())
        return await self.calls.serve(
            HttpRequest("POST", "/", {}, headers, body), api or AnthropicMessages()
        )


def error_in(reply: HttpReply) -> Any:
    assert isinstance(reply.body, bytes)
    return json.loads(reply.body)["error"]


async def test_three_thousand_requests_a_minute_are_enforced():
    """Of ten thousand calls in a minute 3,000 and one second's burst are answered, evenly spread."""
    harness, statuses = Harness(rpm=3_000), list[int]()
    for i in range(10_000):
        harness.now = i * 0.006
        statuses.append((await harness.ask()).status)
    assert statuses.count(200) == pytest.approx(3_050, abs=1)
    assert statuses.count(429) == 10_000 - statuses.count(200)
    admitted = harness.calls.stats.admitted
    assert max(admitted[second] for second in range(1, 60)) <= 51


async def test_a_refusal_has_a_retry_after():
    """It is in whole seconds, rounded up, or exact where configured."""
    harness = Harness(rpm=20)
    assert "retry-after" not in (await harness.ask()).headers
    refused = await harness.ask()
    assert refused.status == 429
    assert refused.headers["retry-after"] == "3"
    assert error_in(refused)["type"] == "rate_limit_error"
    harness.calls.settings = changed(harness.calls.settings, {"fractional_retry_after": True})
    await harness.ask()
    harness.now = 0.5
    assert (await harness.ask()).headers["retry-after"] == "2.500"
    harness.calls.settings = changed(harness.calls.settings, {"retry_after": 5})
    await harness.ask()
    assert (await harness.ask()).headers["retry-after"] == "5.000"


async def test_every_reply_advertises_the_limits_unless_disabled():
    """This holds for answers and refusals, in both formats."""
    harness = Harness(rpm=60, tpm=6_000)
    for status in (200, 429):
        reply = await harness.ask()
        assert reply.status == status
        assert reply.headers["anthropic-ratelimit-requests-limit"] == "60"
        assert reply.headers["anthropic-ratelimit-requests-remaining"] == "0"
        assert reply.headers["anthropic-ratelimit-requests-reset"] == "2026-01-01T00:00:01.000000Z"
        assert int(reply.headers["anthropic-ratelimit-tokens-remaining"]) < 100
    reply = await harness.ask(api=OpenAIChat())
    assert reply.headers["x-ratelimit-reset-requests"] == "1s"
    assert error_in(reply)["code"] == "rate_limit_exceeded"
    silent = Harness(rpm=60, limit_headers=False)
    assert not [name for name in (await silent.ask()).headers if "ratelimit" in name]


async def test_beyond_the_concurrency_calls_are_refused():
    """A call is in flight until its reply has been sent."""
    harness = Harness(concurrency=2)
    first, second = await harness.ask(), await harness.ask()
    assert (await harness.ask()).status == 429
    first.done()
    third = await harness.ask()
    assert (second.status, third.status) == (200, 200)
    assert harness.calls.stats.max_in_flight == 2


async def test_each_attempt_draws_its_fault_anew():
    """A retried request may succeed, and a second run has the same faults."""

    async def fates() -> list[int]:
        harness = Harness(overloaded=0.5)
        return [(await harness.ask()).status for _ in range(40)]

    once = await fates()
    assert set(once) == {200, 529}
    assert once == await fates()


async def test_answered_again_counts_repeated_answers():
    """Two answers to one request were paid for twice."""
    harness = Harness()
    for _ in range(3):
        await harness.ask()
    await harness.ask(messages=[{"role": "user", "content": "Other"}])
    assert harness.calls.stats.listed()["answered_again"] == 2


async def test_an_unforeseen_invalid_request_is_refused():
    """An error deep in a request is a client error, not a server error."""
    harness = Harness()
    for odd in ({"tool_choice": "auto"}, {"tools": 3, "tool_choice": {"type": "any"}}, {"system": 7}):
        assert (await harness.ask(**odd)).status == 400
