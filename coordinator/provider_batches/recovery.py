"""Recovery of a submission with an unknown result: the coordinator crashed, or received no response.

The provider's list decides: a batch of the same size, created since and unknown to the ledger, may be the
submission. Once it has ended, the ids of its results identify it. The provider batch is submitted again
only if there is no such batch, and the time in which one could still appear is over:

    the provider replied with an error of its own       20 s after the reply: the request has ended
    no reply, the reply of a gateway, or a crash        the time-out of a submission, and a minute

That a request has ended is kept in memory: after a crash the longer time applies.
"""

from collections.abc import Collection
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta

from coordinator.provider_batches.context import ProviderBatchContext
from coordinator.provider_batches.provider import BatchProvider, RemoteBatchStatus
from coordinator.provider_batches.requests import number_in
from projections.ledger.provider_batches import ProviderBatch

NO_TIME = timedelta(0)
WAITING = "submission not confirmed: waiting for it to appear at the provider"


@dataclass(frozen=True, slots=True)
class SubmissionFound:
    """The provider batch exists at the provider, with this id."""

    provider_id: str


@dataclass(frozen=True, slots=True)
class SubmissionUnclear:
    """The provider batch may exist; `why` describes for users what the coordinator waits for."""

    why: str
    decided_in: timedelta | None = None
    """When the list decides, if no batch of it may be the submission."""


@dataclass(frozen=True, slots=True)
class SubmissionMissing:
    """The provider batch does not exist at the provider."""


class SubmissionRecovery:
    """Searches the provider's list for provider batches."""

    def __init__(self, context: ProviderBatchContext) -> None:
        self._context = context
        self._ruled_out: set[tuple[str, str]] = set()
        """Foreign batches, ruled out by their results: another check would cost a call each."""
        self._ended: dict[str, tuple[datetime, datetime]] = {}
        """Provider batches whose submission the provider ended: the submission, and when it ended."""

    def record_end(self, provider_batch: ProviderBatch) -> None:
        """Record that the request of a submission has ended: the provider will not create it later."""
        self._ended[provider_batch.id] = provider_batch.claimed_at, self._context.now()

    def retain(self, provider_batch_ids: Collection[str]) -> None:
        """Drop the records of all provider batches but these."""
        self._ended = {key: ended for key, ended in self._ended.items() if key in provider_batch_ids}

    async def find(
        self, provider_batch: ProviderBatch, provider: BatchProvider
    ) -> SubmissionFound | SubmissionUnclear | SubmissionMissing:
        """Search the provider for a provider batch."""
        under_way, listed_at = 0, self._context.now()
        for seen in await self._candidates(provider_batch, provider):
            is_ours = await self._is_ours(provider_batch, seen, provider) if seen.ended else None
            if is_ours:
                return SubmissionFound(seen.provider_id)
            if is_ours is None:
                under_way += 1
            else:
                self._ruled_out.add((provider_batch.id, seen.provider_id))
        if under_way:
            return SubmissionUnclear(_may_be(under_way))
        left = self._too_late(provider_batch) - listed_at
        if left > NO_TIME:
            return SubmissionUnclear(WAITING, decided_in=left)
        return SubmissionMissing()

    def _too_late(self, provider_batch: ProviderBatch) -> datetime:
        """Return when the provider's list is complete: it contains the submission, or it does not exist."""
        settings = self._context.settings
        submission, ended_at = self._ended.get(provider_batch.id, (None, None))
        if ended_at and submission == provider_batch.claimed_at:
            return ended_at + settings.ended_margin
        return provider_batch.claimed_at + settings.submit_timeout + settings.margin

    async def _candidates(
        self, provider_batch: ProviderBatch, provider: BatchProvider
    ) -> list[RemoteBatchStatus]:
        since = provider_batch.intended_at - self._context.settings.skew
        async with aclosing(provider.list(since=since)) as listed:
            alike = [seen async for seen in listed if seen.counts.total == provider_batch.size]
        known = await self._context.repository.filter_known([seen.provider_id for seen in alike])
        known |= {
            provider_id
            for provider_batch_id, provider_id in self._ruled_out
            if provider_batch_id == provider_batch.id
        }
        return [seen for seen in alike if seen.provider_id not in known]

    @staticmethod
    async def _is_ours(
        provider_batch: ProviderBatch, seen: RemoteBatchStatus, provider: BatchProvider
    ) -> bool | None:
        """Whether a batch is ours, by the id of its first result; None if it has no result."""
        async with aclosing(provider.results(seen.provider_id)) as results:
            async for result in results:
                return number_in(provider_batch, result.custom_id) is not None
        return None


def _may_be(count: int) -> str:
    they = "a provider batch of its size is" if count == 1 else f"{count} provider batches of its size are"
    return f"submission not confirmed: {they} in progress, and may be it"
