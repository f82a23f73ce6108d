"""The contract of lanes, a distributed rate limiter; one conformance suite runs on every implementation.

A lane is one rate limit of a provider: the provider, an account and, where the provider limits each model
separately, a model. Every call needs a permit, which is settled with the outcome of the call. An executor
acquires permits and reports settlements in one request. Each request carries the number of permits that the
executor holds, as a lease: a lane that was lost is rebuilt by the next requests, and the permits of an
executor that died expire.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from providers.limits import RateLimits


class BlockedBy(StrEnum):
    """The limit that keeps a lane from granting a permit."""

    RATE = "rate"
    TOKENS = "tokens"
    CONCURRENCY = "concurrency"
    GAP = "gap"
    """The minimum time between two calls."""
    RETRY_AFTER = "retry_after"
    BREAKER = "breaker"


class CallOutcome(StrEnum):
    """The outcome of the call that a permit was granted for."""

    OK = "ok"
    RATE_LIMITED = "rate_limited"
    """Status 429."""
    OVERLOADED = "overloaded"
    """Status 529 or 503: the provider has no capacity now, whatever the rate of this account."""
    FAILED = "failed"
    """The provider timed out, closed the connection, or returned 5xx."""
    UNREACHED = "unreached"
    """Connection refused, or the host name does not resolve: no process received the call."""
    REFUSED = "refused"
    """The provider rejected the request itself (400, 401, 404); it is reachable."""
    ABANDONED = "abandoned"
    """The call was sent and then cancelled: it uses capacity, its result is unknown."""
    UNUSED = "unused"
    """No call was sent."""


@dataclass(frozen=True, slots=True)
class LanePolicy:
    """The configured limits of a lane, equal in all requests for it; None: the lane learns the limit."""

    rpm: float | None = None
    tpm: float | None = None
    max_concurrency: int | None = None
    """Calls in flight of all executors together."""
    gap: float = 0.0
    """Minimum seconds between two calls."""
    breaker_failures: int = 5
    breaker_seconds: float = 30.0
    is_adaptive: bool = True
    """Whether the AIMD controller limits calls in flight in addition to `max_concurrency`."""


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
    """The outcome of one permit, and what the provider returned about its limits."""

    outcome: CallOutcome
    reserved: float = 0.0
    """Tokens that the grant reserved for the call."""
    tokens: float | None = None
    """Tokens that the call used; None if unknown."""
    age: float = 0.0
    """Seconds since the permit was granted."""
    retry_after: float | None = None
    """Seconds from the provider's Retry-After header."""
    limits: RateLimits | None = None


@dataclass(frozen=True, slots=True)
class AcquireRequest:
    """One executor's request to one lane: settlements of earlier permits, and new permits."""

    lane: str
    executor: str
    held: int
    """Permits that the executor holds, without those settled below and those requested."""
    wanted: int = 0
    """Permits requested."""
    estimate: float = 0.0
    """Estimated tokens per call, used until the lane has measured it."""
    policy: LanePolicy = LanePolicy()
    settlements: tuple[Settlement, ...] = ()
    limits: tuple[LaneLimit, ...] = ()
    """The limits that this executor's batches declare on the lane."""
    withdrawn: tuple[str, ...] = ()
    """Origins of limits that it declared before, of batches that are paused or finished."""


@dataclass(frozen=True, slots=True)
class Grant:
    """A lane's response to an `AcquireRequest`."""

    granted: int
    reserved: float = 0.0
    """Tokens reserved for each permit."""
    blocked_by: BlockedBy | None = None
    """The limit that kept the lane from granting the rest."""
    ready_in: float = 0.0
    """Seconds until the next request may succeed; 0 if all was granted."""


@dataclass(frozen=True, slots=True)
class LaneView:
    """The state of a lane, for status output and metrics."""

    lane: str
    blocked_by: BlockedBy | None = None
    since: float | None = None
    """Unix time since which the lane has been throttling."""
    until: float | None = None
    """Unix time of the next permit, if known."""
    rpm: float | None = None
    tpm: float | None = None
    in_flight: int = 0
    concurrency: float = 0.0
    """Calls in flight that the AIMD controller allows now."""
    breaker: str = "closed"
    """closed, open, or half_open."""
    failures: int = 0
    """Consecutive failures and overloads."""
    granted: int = 0
    rate_limited: int = 0
    """Calls since the lane was created, and how many of them the provider answered with 429."""
    tokens_per_call: float | None = None
    message: str = ""
    limits: tuple[LaneLimit, ...] = ()
    """The limits in force."""


class LanesUnavailable(Exception):  # noqa: N818 - what callers catch to wait and try again
    """The lane store could not be reached, or did not respond."""


class Lanes(Protocol):
    """All lanes."""

    async def acquire(self, requests: Sequence[AcquireRequest]) -> list[Grant]:
        """Settle, then grant; each request is for another lane. Raises `LanesUnavailable`."""
        ...

    async def views(self, lanes: Sequence[str]) -> list[LaneView]:
        """Return the state of lanes; a lane without state yet is unblocked."""
        ...
