"""The port of a provider's batch API.

create    → a batch; or `SubmissionRejected`: none was created; or `NoResponse`: the result is unknown
retrieve  → its status
list      → all batches since a time, the newest first
results   → one result per request, in any order, once it has ended
cancel    → it stops as soon as it can; the results contain what was answered by then
"""

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

from domain.batch_spec import TargetSpec
from eventlog.redaction import redact
from projections.ledger.provider_batches import RequestCounts


class ProviderRequestFailed(Exception):  # noqa: N818 - a condition to retry, not a defect
    """A request to the provider failed; the message is shown to users, and contains no secret."""

    def __init__(self, message: str, *, retry_after: timedelta | None = None) -> None:
        super().__init__(redact(message))
        self.retry_after = retry_after


class NoResponse(ProviderRequestFailed):
    """Whether the provider executed the request is unknown; `has_ended` if it replied with an error itself.

    Otherwise the connection was lost, or a gateway replied: the provider may execute the request later.
    """

    def __init__(
        self, message: str, *, retry_after: timedelta | None = None, has_ended: bool = False
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.has_ended = has_ended


class SubmissionRejected(ProviderRequestFailed):
    """The provider rejected the request and created nothing; `is_passing` if a later retry may succeed."""

    def __init__(
        self, message: str, *, retry_after: timedelta | None = None, is_passing: bool = False
    ) -> None:
        super().__init__(message, retry_after=retry_after)
        self.is_passing = is_passing


@dataclass(frozen=True, slots=True)
class RemoteBatchStatus:
    """The status of a batch at the provider."""

    provider_id: str
    created_at: datetime
    counts: RequestCounts
    ended: bool


@dataclass(frozen=True, slots=True)
class Succeeded:
    """The provider's message, unchanged."""

    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Errored:
    """The request failed."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class NotProcessed:
    """The provider did not process the request: `expired` or `canceled`."""

    why: str


@dataclass(frozen=True, slots=True)
class BatchResult:
    """The outcome of one request."""

    custom_id: str
    outcome: Succeeded | Errored | NotProcessed


class BatchProvider(Protocol):
    """One account at one provider."""

    async def create(self, body: AsyncIterator[bytes], *, length: int) -> RemoteBatchStatus:
        """Submit a batch, whose JSON comes in pieces; raises `SubmissionRejected` or `NoResponse`."""
        ...

    async def retrieve(self, provider_id: str) -> RemoteBatchStatus:
        """Return the status of a batch."""
        ...

    def list(self, *, since: datetime) -> AsyncGenerator[RemoteBatchStatus, None]:
        """List the batches created since a time, the newest first."""
        ...

    def results(self, provider_id: str) -> AsyncGenerator[BatchResult, None]:
        """Read the results of a batch that has ended, in any order."""
        ...

    async def cancel(self, provider_id: str) -> None:
        """Request cancellation; idempotent."""
        ...


ProviderOf = Callable[[TargetSpec], BatchProvider]
"""Returns the provider of a target; raises `SubmissionRejected` where there is none, as without a key."""
