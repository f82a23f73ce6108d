"""The rate limits that a provider advertises in the headers of a reply."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Headroom:
    """One limit per minute and what remains of it; None for unknown."""

    limit: float | None = None
    remaining: float | None = None
    resets_in: timedelta | None = None
    """When it will be whole again, if nothing more is used."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The rate limits advertised in one reply."""

    requests: Headroom = Headroom()
    tokens: Headroom = Headroom()
