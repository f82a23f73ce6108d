"""The contract of lanes; the memory and the Redis form are held to it, and to each other.

A lane is one rate limit of the other side: a provider, an account and, where the provider counts so, a
model. Everybody who calls it asks here first, and says afterwards what came of it. An executor asks for
permits and reports settlements in one go; how many permits it holds it says each time anew, so a lane that
was lost is whole again with the next round of asks, and one whose executor died forgets it by itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from providers.limits import RateLimits


class Why(StrEnum):
    """What a lane waits for."""

    RATE = "rate"
    TOKENS = "tokens"
    CONCURRENCY = "concurrency"
    GAP = "gap"
    """The least time between two calls."""
    RETRY_AFTER = "retry_after"
    BREAKER = "breaker"


class Outcome(StrEnum):
    """What came of a permit."""

    OK = "ok"
    RATE_LIMITED = "rate_limited"
    """429, or 529: asked too much."""
    FAILED = "failed"
    """The other side timed out, broke off, or answered 5xx."""
    UNREACHED = "unreached"
    """Connection refused, or the host name does not resolve: no process received the call."""
    REFUSED = "refused"
    """It answered, and the call was wrong: 400, 401, 404. The lane is well."""
    ABANDONED = "abandoned"
    """It was called, and nobody waited for what came of it: the call counts, and tells nothing."""
    UNUSED = "unused"
    """Nobody was called."""


@dataclass(frozen=True, slots=True)
class Policy:
    """What is known of a lane's limits beforehand, the same for everybody who asks; None: to be learnt."""

    rpm: float | None = None
    tpm: float | None = None
    max_concurrency: int | None = None
    """For the whole fleet."""
    gap: float = 0.0
    """Seconds between two calls, at least."""
    breaker_failures: int = 5
    breaker_seconds: float = 30.0
    is_adaptive: bool = True
    """Whether calls in flight are also bound by what the lane has learnt (AIMD); else by limits alone."""


@dataclass(frozen=True, slots=True)
class LaneLimit:
    """A limit that a batch declares on a lane; while it is in force it binds every batch on the lane."""

    origin: str
    """The batch's id and the key of its spec, separated by a space."""
    rpm: float | None = None
    tpm: float | None = None
    max_concurrency: int | None = None
    gap: float = 0.0


@dataclass(frozen=True, slots=True)
class Settlement:
    """What came of one permit."""

    outcome: Outcome
    reserved: float = 0.0
    """Tokens that the grant set aside for it."""
    tokens: float | None = None
    """Tokens it used; None where that is not known."""
    age: float = 0.0
    """Seconds since the permit was granted."""
    retry_after: float | None = None
    """Seconds the other side asks for."""
    limits: RateLimits | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """One executor at one lane."""

    lane: str
    executor: str
    held: int
    """Permits it still holds, after the settlements below and before what is wanted."""
    wanted: int = 0
    """Permits it could use now."""
    estimate: float = 0.0
    """Tokens of a call, until the lane has learnt what calls take."""
    policy: Policy = Policy()
    settlements: tuple[Settlement, ...] = ()
    limits: tuple[LaneLimit, ...] = ()
    """The limits that this executor's batches declare on the lane."""
    withdrawn: tuple[str, ...] = ()
    """Origins of limits that it declared before, of batches that are paused or over."""


@dataclass(frozen=True, slots=True)
class Grant:
    """What the lane says."""

    granted: int
    reserved: float = 0.0
    """Tokens set aside for each."""
    why: Why | None = None
    """What kept the rest back."""
    ready_in: float = 0.0
    """Seconds until it is worth asking again; 0 where all was granted."""


@dataclass(frozen=True, slots=True)
class LaneView:
    """How a lane stands, for people."""

    lane: str
    why: Why | None = None
    since: float | None = None
    """Since when it has been holding calls back, as a Unix time."""
    until: float | None = None
    """When it will let the next call through, as a Unix time, where that is known."""
    rpm: float | None = None
    tpm: float | None = None
    in_flight: int = 0
    concurrency: float = 0.0
    """How many calls may be in flight now: learnt."""
    breaker: str = "closed"
    """closed, open, or half_open."""
    failures: int = 0
    """In a row."""
    granted: int = 0
    rate_limited: int = 0
    """Calls since the lane was made, and how many of them were refused as too many."""
    tokens_per_call: float | None = None
    message: str = ""
    limits: tuple[LaneLimit, ...] = ()
    """Those in force."""


class LanesUnavailable(Exception):  # noqa: N818 - what callers catch to wait and try again
    """The lanes could not be reached, or did not answer."""


class Lanes(Protocol):
    """All lanes."""

    async def ask(self, asks: Sequence[Ask]) -> list[Grant]:
        """Settle, then grant; asks of one call are of different lanes. Raises `LanesUnavailable`."""
        ...

    async def views(self, lanes: Sequence[str]) -> list[LaneView]:
        """Say how lanes stand; one that nobody has asked yet is closed to nobody."""
        ...
