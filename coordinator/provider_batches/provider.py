"""A provider that answers batches of requests, as its port promises it.

create    → a batch that it works on, or `TurnedAway`: it certainly has none; or `NoReply`: who knows
retrieve  → how far it is
list      → all batches since a moment, the newest first
results   → one result a request, in any order, once it has ended
cancel    → it stops as soon as it can; what was answered by then is in the results
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from domain.batch_spec import TargetSpec
from eventlog.redaction import redact
from projections.ledger.provider_batches import RequestCounts


class ProviderRequestFailed(Exception):  # noqa: N818 - what callers wait out
    """The provider did not do as it was asked; the text is for people, and holds no secret."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(redact(message))
        self.retry_after = retry_after


class NoResponse(ProviderRequestFailed):
    """Nobody knows whether it was heard."""


class SubmissionRejected(ProviderRequestFailed):
    """It was heard, and nothing was done; `is_passing` if asking later may help."""

    def __init__(
        self, message: str, *, retry_after: timedelta | None = None, is_passing: bool = False
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.is_passing = is_passing


@dataclass(frozen=True, slots=True)
class RemoteBatchStatus:
    """A batch as the provider shows it."""

    provider_id: str
    created_at: datetime
    counts: RequestCounts
    ended: bool


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The provider's message, as it came."""

    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Errored:
    """The request failed."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class NotProcessed:
    """The request was never tried: `expired` or `canceled`."""

    why: str


@dataclass(frozen=True, slots=True)
class BatchResult:
    """What became of one request."""

    custom_id: str
    outcome: Succeeded | Errored | NotProcessed


class BatchProvider(Protocol):
    """One account at one provider."""

    async def create(self, body: AsyncIterator[bytes], *, length: int) -> RemoteBatchStatus:
        """Submit a batch, whose JSON comes in pieces; raises `TurnedAway` or `NoReply`."""
        ...

    async def retrieve(self, provider_id: str) -> RemoteBatchStatus:
        """Look at a batch."""
        ...

    def list(self, *, since: datetime) -> AsyncGenerator[RemoteBatchStatus, None]:
        """List the batches that were created since a moment, the newest first."""
        ...

    def results(self, provider_id: str) -> AsyncGenerator[BatchResult, None]:
        """Read the results of a batch that has ended, in any order."""
        ...

    async def cancel(self, provider_id: str) -> None:
        """Ask for an end; asking again changes nothing."""
        ...


ProviderOf = Callable[[TargetSpec], BatchProvider]
"""Who answers batches for a target; raises `TurnedAway` where that can't be, as without a key."""
