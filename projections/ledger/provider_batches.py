"""What the ledger knows of provider batches; kept by Postgres and by the memory form alike.

A provider has no word for "this again": whoever submits twice pays twice. So a chunk is written down as
intended before it is submitted: whatever happens in between, the row tells the next one what to look for.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import NamedTuple, Protocol

from eventlog.events import Event
from projections.ledger.contract import Batch, UnpublishedOpening


class ProviderBatchState(StrEnum):
    """How far a provider batch has come."""

    INTENDED = "intended"
    """It may have been submitted, and may not: nobody was told by the provider."""
    SUBMITTED = "submitted"
    ENDED = "ended"
    """The provider is done with it; its results are being read."""
    COLLECTED = "collected"
    CANCELLED = "cancelled"
    """Its batch was called off, and what it had cost by then is on record."""
    ABANDONED = "abandoned"
    """It was never created: its evaluations are asked in another."""


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """What became of its requests, as the provider counts them."""

    processing: int = 0
    succeeded: int = 0
    errored: int = 0
    canceled: int = 0
    expired: int = 0

    @property
    def total(self) -> int:
        """All of them."""
        return self.processing + self.succeeded + self.errored + self.canceled + self.expired


@dataclass(frozen=True, slots=True)
class ProviderBatch:
    """One batch at a provider: evaluations of one batch and one target, asked together."""

    id: str
    batch_id: str
    target: int
    """Which of the batch's targets is asked, by its place."""
    members: tuple[int, ...]
    """Numbers of the evaluations, in order."""
    attempts: tuple[int, ...]
    bytes: int
    digest: str
    """Of all requests, in order."""
    intended_at: datetime
    claimed_at: datetime
    """Since when somebody may be submitting it."""
    state: ProviderBatchState = ProviderBatchState.INTENDED
    provider_id: str | None = None
    submitted_at: datetime | None = None
    called_off: bool = False
    """Whether the provider was asked to cancel it."""
    note: str = ""
    reserved_cost: int = 0
    """Nanodollars reserved in the budget account of its batch."""
    reserved_tokens: int = 0

    @property
    def size(self) -> int:
        """How many requests it has."""
        return len(self.members)


class ProviderBatchMember(NamedTuple):
    """An evaluation that waits for a provider batch's answer, and what its attempt was opened with."""

    evaluation_id: str
    opening: Event
    body: bytes


class ProviderBatchRepository(Protocol):
    """The part of the ledger that is about provider batches."""

    async def waiting(
        self, batch: Batch, *, target: int, targets: int, after: str, limit: int
    ) -> list[ProviderBatchMember]:
        """Return a page of those that wait to be asked of one of `targets`, and are in no chunk yet."""
        ...

    async def intend(self, chunk: ProviderBatch, evaluation_ids: Sequence[str]) -> bool:
        """Write a chunk down, and that these are in it; False if the batch was stopped or paused since."""
        ...

    async def members(self, chunk: ProviderBatch, *, after: str, limit: int) -> list[ProviderBatchMember]:
        """Return a page of those evaluations of a chunk that still wait for its answers."""
        ...

    async def still_waiting(self, chunk: ProviderBatch, evaluation_ids: Sequence[str]) -> set[str]:
        """Name those of these evaluations that still wait for a chunk's answers."""
        ...

    async def open_chunks(self) -> list[ProviderBatch]:
        """List the chunks that are not done with, of all batches, the oldest first."""
        ...

    async def claim(self, chunk: ProviderBatch, *, now: datetime) -> ProviderBatch | None:
        """Take the right to submit a chunk once more; None if somebody else was first."""
        ...

    async def submitted(self, chunk: ProviderBatch, provider_id: str, *, now: datetime) -> bool:
        """Write down what the provider calls a chunk; False if that was known, or it is done with."""
        ...

    async def known(self, provider_ids: Sequence[str]) -> set[str]:
        """Name those of a provider's batches that belong to some chunk."""
        ...

    async def seen(
        self, chunk: ProviderBatch, counts: RequestCounts, *, now: datetime, ended: bool
    ) -> None:
        """Write down how a chunk stands at the provider."""
        ...

    async def noted(self, chunk: ProviderBatch, note: str) -> None:
        """Write down what keeps a chunk; empty: nothing any more."""
        ...

    async def called_off(self, chunk: ProviderBatch) -> None:
        """Write down that the provider was asked to cancel a chunk."""
        ...

    async def close(self, chunk: ProviderBatch, state: ProviderBatchState, *, now: datetime) -> None:
        """Write down that a chunk is done with; those of an abandoned one wait for another."""
        ...

    async def has_groups(self, batch_id: str) -> bool:
        """Say whether evaluations of a batch wait for each other."""
        ...

    async def change_spec(self, batch_id: str, spec: bytes, *, by: str, reason: str) -> bool:
        """Change what a batch is about, as far as that is possible; False if it is over."""
        ...

    async def release(self, batch: Batch, *, epochs: Sequence[str], limit: int) -> list[UnpublishedOpening]:
        """Take some that are in no chunk yet out of the line, as published in these epochs."""
        ...
