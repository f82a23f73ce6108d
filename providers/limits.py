"""What a provider says of its own rate limits, in whichever dialect it says so."""

from dataclasses import dataclass
from datetime import timedelta


@dataclass(frozen=True, slots=True)
class Headroom:
    """One limit: so much a minute, so much of it left; None for what was not said."""

    limit: float | None = None
    remaining: float | None = None
    resets_in: timedelta | None = None
    """When it will be whole again, if nothing more is used."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """All that one reply said."""

    requests: Headroom = Headroom()
    tokens: Headroom = Headroom()
