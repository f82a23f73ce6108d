"""Faults of models as targets: their class, their remedy and what counts against the lane."""

from datetime import timedelta

import httpx2
import pytest

from executor.contract import (
    Overloaded,
    Permanent,
    RateLimited,
    Transient,
    Unreachable,
)
from tests.unit.providers.scripted import BOTH, KEY, error, fault, replying


@pytest.mark.parametrize(
    ("name", "status", "body", "kind", "reported"),
    [
        (
            "anthropic",
            401,
            error("authentication_error", f"bad {KEY}"),
            "authentication",
            "ANTHROPIC_API_KEY",
        ),
        ("openai", 401, error("x", f"Incorrect API key {KEY}"), "authentication", "OPENAI_API_KEY"),
        ("anthropic", 404, error("not_found_error"), "model_not_found", "no model 'claude-haiku-4-5'"),
        ("openai", 404, error("x"), "model_not_found", "no model 'gpt-4o-mini'"),
        ("anthropic", 400, error("x", "prompt is too long: 9 > 8"), "prompt_too_long", "shorten it"),
        ("openai", 400, {"error": {"code": "context_length_exceeded"}}, "prompt_too_long", "shorten it"),
        ("openai", 422, error("x", "temperature"), "invalid_request", "temperature"),
        ("anthropic", 413, b"", "prompt_too_long", "shorten it"),
    ],
)
async def test_a_permanent_error_has_the_remedy(name, status, body, kind, reported):
    """A wrong key, a wrong model and a long prompt fail at once."""
    for stream in (False, True):
        got = await fault(name, replying(status, body), stream=stream)
        assert (type(got), got.kind) == (Permanent, kind)
        assert reported in got.message


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", BOTH)
async def test_a_rate_limit_carries_its_retry_after_and_limits(name, stream):
    """Retry-After and the limits in headers are fields of the error, and no second call is made here."""
    calls = 0

    def handler(request: httpx2.Request) -> httpx2.Response:
        nonlocal calls
        calls += 1
        headers = {"retry-after": "7", "x-ratelimit-limit-requests": "60"}
        headers |= {"anthropic-ratelimit-requests-limit": "60"}
        return httpx2.Response(429, headers=headers, json=error("rate_limit_error"))

    got = await fault(name, handler, stream=stream)
    assert isinstance(got, RateLimited)
    assert got.retry_after == timedelta(seconds=7)
    assert got.limits is not None
    assert got.limits.requests.limit == 60
    assert calls == 1


async def test_without_retry_after_the_reset_of_an_exhausted_limit_is_the_wait():
    """The reset time of the exhausted limit becomes `retry_after`."""
    headers = {"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "6m0s"}
    got = await fault("openai", replying(429, error("tokens"), **headers))
    assert isinstance(got, RateLimited)
    assert got.retry_after == timedelta(minutes=6)


@pytest.mark.parametrize(
    ("status", "class_"), [(529, Overloaded), (500, Unreachable), (503, Unreachable), (408, Unreachable)]
)
@pytest.mark.parametrize("name", BOTH)
async def test_overload_is_a_rate_limit_and_breakage_counts_against_the_lane(name, status, class_):
    """529 is an overload; other 5xx and 408 are failures that may open the breaker."""
    assert type(await fault(name, replying(status, error("x")))) is class_


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "raised", [httpx2.ConnectError("no"), httpx2.ReadError("reset"), httpx2.ConnectTimeout("t")]
)
@pytest.mark.parametrize("name", BOTH)
async def test_a_failed_connection_is_unreachable(name, raised, stream):
    """A refused, reset or timed-out connection counts against the lane."""

    def handler(request: httpx2.Request) -> httpx2.Response:
        raised.request = request
        raise raised

    got = await fault(name, handler, stream=stream)
    assert (type(got), got.kind) == (Unreachable, "connection")
    assert type(raised).__name__ in got.message


@pytest.mark.parametrize("name", BOTH)
async def test_a_slow_answer_does_not_count_against_the_lane(name):
    """A read time-out is only a transient error."""

    def handler(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("slow", request=request)

    got = await fault(name, handler)
    assert (type(got), got.kind) == (Transient, "timeout")
