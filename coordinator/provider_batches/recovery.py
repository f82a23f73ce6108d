"""Recovery of a submission with an unknown result: the coordinator crashed, or received no response.

The provider's list decides: a batch of the same size, created since and unknown to the ledger, may be the
submission. Once it has ended, the ids of its results identify it. The provider batch is submitted again
only if there is no such batch, and the time in which one could still appear is over.
"""

from contextlib import aclosing
from dataclasses import dataclass

from coordinator.provider_batches.context import ProviderBatchContext
from coordinator.provider_batches.provider import BatchProvider, RemoteBatchStatus
from coordinator.provider_batches.requests import number_in
from projections.ledger.provider_batches import ProviderBatch


@dataclass(frozen=True, slots=True)
class SubmissionFound:
    """The provider batch exists at the provider, with this id."""

    provider_id: str


@dataclass(frozen=True, slots=True)
class SubmissionUnclear:
    """The provider batch may exist; `why` describes for users what the coordinator waits for."""

    why: str


@dataclass(frozen=True, slots=True)
class SubmissionMissing:
    """The provider batch does not exist at the provider."""


class SubmissionRecovery:
    """Searches the provider's list for provider batches."""

    def __init__(self, context: ProviderBatchContext) -> None:
        self._context = context
        self._ruled_out: set[tuple[str, str]] = set()
        """Foreign batches, ruled out by their results: another check would cost a call each."""

    async def find(
        self, provider_batch: ProviderBatch, provider: BatchProvider
    ) -> SubmissionFound | SubmissionUnclear | SubmissionMissing:
        """Search the provider for a provider batch."""
        under_way = 0
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
        settings = self._context.settings
        too_late = provider_batch.claimed_at + settings.submit_timeout + settings.margin
        if self._context.now() < too_late:
            return SubmissionUnclear("submission not confirmed: waiting for it to appear at the provider")
        return SubmissionMissing()

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
