"""Rate limit headers of providers: limits per minute, resets and Retry-After."""

from datetime import UTC, datetime, timedelta

import pytest

from providers.limits import Headroom, RateLimits
from providers.rate_limit_headers import (
    ANTHROPIC,
    CEREBRAS,
    GROQ,
    NO_HEADERS,
    OPENAI,
    duration,
    limits_of,
    retry_after,
    wait_for,
)

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("6m0s", 360), ("20ms", 0.02), ("1h2m3s", 3_723), ("1.5s", 1.5), ("2d", 172_800), ("7", 7)],
)
def test_durations_are_parsed_in_openais_format(text, seconds):
    """`6m0s` is six minutes, and `20ms` is not twenty minutes."""
    assert duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize("text", ["", "soon", "-1", "1x", "nan", "m"])
def test_an_invalid_duration_gives_none(text):
    """An invalid header sets no limit."""
    assert duration(text) is None


def test_anthropic_reports_its_limits_as_timestamps():
    """A reset is a duration from the provider's Date header, where there is one."""
    headers = {
        "Anthropic-RateLimit-Requests-Limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
        "anthropic-ratelimit-requests-reset": "2026-11-16T12:00:30Z",
        "anthropic-ratelimit-input-tokens-limit": "40000",
        "anthropic-ratelimit-input-tokens-remaining": "0",
        "anthropic-ratelimit-input-tokens-reset": "2026-11-16T12:01:00Z",
    }
    wanted = RateLimits(Headroom(50, 49, timedelta(seconds=30)), Headroom(40_000, 0, timedelta(seconds=60)))
    assert limits_of(ANTHROPIC, headers, now=NOW) == wanted
    skewed = {**headers, "date": "Mon, 16 Nov 2026 12:00:00 GMT"}
    assert limits_of(ANTHROPIC, skewed, now=NOW + timedelta(hours=1)) == wanted
    assert wait_for(wanted) == timedelta(seconds=60)


def test_openai_reports_its_limits_as_durations():
    """Groq's request limit is per day, so it is not taken for one per minute."""
    headers = {
        "x-ratelimit-limit-requests": "60",
        "x-ratelimit-remaining-requests": "59",
        "x-ratelimit-reset-requests": "1s",
        "x-ratelimit-limit-tokens": "150000",
        "x-ratelimit-remaining-tokens": "149984",
        "x-ratelimit-reset-tokens": "6m0s",
    }
    tokens = Headroom(150_000, 149_984, timedelta(minutes=6))
    assert limits_of(OPENAI, headers, now=NOW) == RateLimits(Headroom(60, 59, timedelta(seconds=1)), tokens)
    assert limits_of(GROQ, headers, now=NOW) == RateLimits(tokens=tokens)
    assert limits_of(NO_HEADERS, headers, now=NOW) is None
    assert limits_of(OPENAI, {"x-ratelimit-limit-requests": "many"}, now=NOW) is None


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after": "Mon, 16 Nov 2026 12:00:09 GMT"}, 9),
        ({"retry-after": "Mon, 16 Nov 2026 11:00:00 GMT"}, 0),
        ({"retry-after": "9999999"}, 86_400),
    ],
)
def test_retry_after_is_read_from_several_headers(headers, seconds):
    """Milliseconds, seconds, or a date; a day at most."""
    assert retry_after(headers, now=NOW) == timedelta(seconds=seconds)


def test_a_missing_or_invalid_retry_after_is_none():
    """No default is made up here."""
    assert retry_after({"retry-after": "soon"}, now=NOW) is None
    assert retry_after({}, now=NOW) is None


def test_cerebras_reports_its_tokens_a_minute():
    """Its limit of requests is per day and is not read."""
    headers = {
        "x-ratelimit-limit-requests-day": "14400",
        "x-ratelimit-remaining-requests-day": "0",
        "x-ratelimit-limit-tokens-minute": "60000",
        "x-ratelimit-remaining-tokens-minute": "59000",
        "x-ratelimit-reset-tokens-minute": "12.5",
    }
    expected = RateLimits(Headroom(), Headroom(60_000, 59_000, timedelta(seconds=12.5)))
    assert limits_of(CEREBRAS, headers, now=NOW) == expected
