"""The rate limit headers of each provider.

A row of header names describes one provider. Only limits per minute are read: a limit per day, such as
Groq's limit of requests, would be taken for a limit per minute.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from math import isfinite

from providers.limits import Headroom, RateLimits

LONGEST_WAIT = timedelta(days=1)
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_PIECE = r"(\d+(?:\.\d+)?)(ms|s|m|h|d)"


@dataclass(frozen=True, slots=True)
class HeaderNames:
    """The headers of one limit."""

    limit: str
    remaining: str
    reset: str


@dataclass(frozen=True, slots=True)
class RateLimitHeaders:
    """The headers of one provider; of several ways to name a limit the first that is there counts."""

    requests: tuple[HeaderNames, ...] = ()
    tokens: tuple[HeaderNames, ...] = ()


def _anthropic(what: str) -> HeaderNames:
    stem = f"anthropic-ratelimit-{what}"
    return HeaderNames(f"{stem}-limit", f"{stem}-remaining", f"{stem}-reset")


def _openai(what: str) -> HeaderNames:
    return HeaderNames(
        f"x-ratelimit-limit-{what}", f"x-ratelimit-remaining-{what}", f"x-ratelimit-reset-{what}"
    )


ANTHROPIC = RateLimitHeaders((_anthropic("requests"),), (_anthropic("tokens"), _anthropic("input-tokens")))
OPENAI = RateLimitHeaders((_openai("requests"),), (_openai("tokens"),))
GROQ = RateLimitHeaders((), (_openai("tokens"),))
CEREBRAS = RateLimitHeaders((), (_openai("tokens-minute"),))
NO_HEADERS = RateLimitHeaders()
"""A provider that reports no limits."""


def limits_of(names: RateLimitHeaders, headers: Mapping[str, str], *, now: datetime) -> RateLimits | None:
    """Parse the rate limits in the headers of a reply; None if there are none."""
    lowered = {name.lower(): value for name, value in headers.items()}
    # Resets are moments on the provider's clock, which is not ours: its own Date is nearer to them.
    now = _moment(lowered.get("date", "")) or now
    found = RateLimits(
        _headroom(names.requests, lowered, now) or Headroom(),
        _headroom(names.tokens, lowered, now) or Headroom(),
    )
    return None if found == RateLimits() else found


def retry_after(headers: Mapping[str, str], *, now: datetime) -> timedelta | None:
    """Parse how long to wait: in milliseconds, in seconds, or until a date; None without such a header."""
    lowered = {name.lower(): value.strip() for name, value in headers.items()}
    if (milliseconds := _number(lowered.get("retry-after-ms", ""))) is not None:
        return _bounded(timedelta(milliseconds=min(milliseconds, 1e9)))
    value = lowered.get("retry-after", "")
    if (seconds := _number(value)) is not None:
        return _bounded(timedelta(seconds=min(seconds, 1e6)))
    until = _moment(value)
    return None if until is None else _bounded(until - (_moment(lowered.get("date", "")) or now))


def wait_for(limits: RateLimits | None) -> timedelta | None:
    """Return when an exhausted limit will be refilled; None if unknown."""
    spent = [each for each in (limits.requests, limits.tokens) if each.remaining == 0] if limits else []
    waits = [each.resets_in for each in spent if each.resets_in is not None]
    return _bounded(max(waits)) if waits else None


def duration(text: str) -> timedelta | None:
    """Read a length of time as OpenAI writes it (`20ms`, `1s`, `6m0s`), or a plain number of seconds."""
    text = text.strip()
    if (seconds := _number(text)) is not None:
        return timedelta(seconds=min(seconds, 1e9))
    if not re.fullmatch(f"(?:{_PIECE})+", text):
        return None
    pieces = re.findall(_PIECE, text)
    return timedelta(seconds=min(sum(float(count) * _UNITS[unit] for count, unit in pieces), 1e9))


def _headroom(
    candidates: tuple[HeaderNames, ...], lowered: Mapping[str, str], now: datetime
) -> Headroom | None:
    for names in candidates:
        limit, remaining = _number(lowered.get(names.limit, "")), _number(lowered.get(names.remaining, ""))
        if limit is not None or remaining is not None:
            return Headroom(limit, remaining, _resets_in(lowered.get(names.reset, ""), now))
    return None


def _resets_in(text: str, now: datetime) -> timedelta | None:
    if (length := duration(text)) is not None:
        return length
    until = _moment(text)
    return None if until is None else max(until - now, timedelta(0))


def _moment(text: str) -> datetime | None:
    """Read a moment, as RFC 3339 or as HTTP writes it."""
    for read in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = read(text)
        except ValueError:
            continue
        return moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if isfinite(number) and number >= 0 else None


def _bounded(wait: timedelta) -> timedelta:
    return min(max(wait, timedelta(0)), LONGEST_WAIT)
