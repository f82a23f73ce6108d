"""The repository of provider batches: its contract, which Postgres and memory implement.

Submission to a provider is not idempotent: a second one is paid twice. So the coordinator records the
intent before it submits (write-ahead): after a crash the row identifies the submission to look for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from eventlog.events import Event
from projections.ledger.batch import Batch
from projections.ledger.contract import UnpublishedOpening


class ProviderBatchState(StrEnum):
    """The life of a provider batch."""

    INTENDED = "intended"
    """Recorded before submission: whether the provider received it is unknown."""
    SUBMITTED = "submitted"
    ENDED = "ended"
    """The provider has ended it; its results are being collected."""
    COLLECTED = "collected"
    CANCELLED = "cancelled"
    """Its batch was cancelled, and its cost until then is recorded."""
    ABANDONED = "abandoned"
    """The provider never created it: its evaluations go into another."""


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """The provider's counts of requests by outcome."""

    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        """The number of requests."""
        return self.processing + self.succeeded + self.errored + self.canceled + self.expired


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """One batch at a provider: requests for evaluations of one batch and one target."""

    id: str
    batch_id: str
    target: int
    """The index of the target in the batch's spec."""
    members: tuple[int, ...]
    """Numbers of the evaluations, in order."""
    attempts: tuple[int, ...]
    bytes: int
    digest: str
    """Digest of all requests, in order."""
    intended_at: datetime
    claimed_at: datetime
    """When a coordinator last claimed its submission."""
    state: ProviderBatchState = ProviderBatchState.INTENDED
    provider_id: str | None = None
    submitted_at: datetime | None = None
    called_off: bool = False
    """Whether cancellation was requested from the provider."""
    note: str = ""
    reserved_cost: int = 0
    """Nanodollars reserved in the budget account of its batch."""
    reserved_tokens: int = 0

    @property
    def size(self) -> int:
        """The number of requests."""
        return len(self.members)


class PendingRequest(NamedTuple):
    """An evaluation that waits for a provider batch's result, and the event that opened its attempt."""

    evaluation_id: str
    opening: Event
    body: bytes


class ProviderBatchRepository(Protocol):
    """Stores provider batches and which evaluations wait for them."""

    async def list_unassigned(
        self, batch: Batch, *, target: int, targets: int, after: str, limit: int
    ) -> list[PendingRequest]:
        """Return a page of evaluations that wait for one of `targets` and are in no provider batch yet."""
        ...

    async def record_intent(self, provider_batch: ProviderBatch, evaluation_ids: Sequence[str]) -> bool:
        """Record a provider batch and its members; False if its batch was stopped or paused since."""
        ...

    async def list_pending(
        self, provider_batch: ProviderBatch, *, after: str, limit: int
    ) -> list[PendingRequest]:
        """Return a page of the members of a provider batch that still wait for its results."""
        ...

    async def filter_pending(
        self, provider_batch: ProviderBatch, evaluation_ids: Sequence[str]
    ) -> set[str]:
        """Return those of these evaluations that still wait for the results of a provider batch."""
        ...

    async def list_open(self) -> list[ProviderBatch]:
        """List the open provider batches of all batches, the oldest first."""
        ...

    async def claim(self, provider_batch: ProviderBatch, *, now: datetime) -> ProviderBatch | None:
        """Claim a submission by compare-and-set; None if another coordinator was first."""
        ...

    async def record_submission(
        self, provider_batch: ProviderBatch, provider_id: str, *, now: datetime
    ) -> bool:
        """Record the provider's id; False if it was recorded before, or the batch is closed."""
        ...

    async def filter_known(self, provider_ids: Sequence[str]) -> set[str]:
        """Return those of a provider's batch ids that belong to a recorded provider batch."""
        ...

    async def record_counts(
        self, provider_batch: ProviderBatch, counts: RequestCounts, *, now: datetime, ended: bool
    ) -> None:
        """Record the provider's counts of a provider batch, and whether it has ended."""
        ...

    async def record_note(self, provider_batch: ProviderBatch, note: str) -> None:
        """Record why a provider batch makes no progress; empty: it does."""
        ...

    async def record_cancel_request(self, provider_batch: ProviderBatch) -> None:
        """Record that cancellation was requested from the provider."""
        ...

    async def close(
        self, provider_batch: ProviderBatch, state: ProviderBatchState, *, now: datetime
    ) -> None:
        """Close a provider batch; members of an abandoned one become unassigned."""
        ...

    async def has_groups(self, batch_id: str) -> bool:
        """Return whether a batch has serial groups."""
        ...

    async def update_spec(self, batch_id: str, spec: bytes, *, by: str, reason: str) -> bool:
        """Replace the spec of a batch; False if it is finished."""
        ...

    async def release(self, batch: Batch, *, epochs: Sequence[str], limit: int) -> list[UnpublishedOpening]:
        """Publish unassigned evaluations to the task queue instead, in these epochs."""
        ...
