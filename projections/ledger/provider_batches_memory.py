"""Provider batches in memory, beside the ledger there: the same contract, for unit tests and simulation."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from eventlog import payloads as p
from projections.ledger.contract import Batch, UnpublishedOpening
from projections.ledger.memory import MemoryLedger
from projections.ledger.memory_batches import BatchEvent
from projections.ledger.provider_batches import (
    ProviderBatch,
    ProviderBatchMember,
    ProviderBatchState,
    RequestCounts,
)

OPEN = frozenset({ProviderBatchState.INTENDED, ProviderBatchState.SUBMITTED, ProviderBatchState.ENDED})


class MemoryProviderBatchRepository:
    """`ProviderBooks` without a server; no call gives way to another before it is done."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self.ledger = ledger
        self.chunks: dict[str, ProviderBatch] = {}
        self.counts: dict[str, RequestCounts] = {}
        self.touched: dict[str, datetime] = {}
        """When each was last heard of."""
        self._told = ledger._told  # noqa: SLF001 - two parts of one ledger

    async def waiting(
        self, batch: Batch, *, target: int, targets: int, after: str, limit: int
    ) -> list[ProviderBatchMember]:
        """Return a page of those that wait to be asked of one of `targets`, and are in no chunk yet."""
        found = await self._asked(await self._open_in(batch.batch_id, ""))
        return [
            one
            for one in found
            if one.evaluation_id > after
            and isinstance(one.opening.data, p.Queued)
            and one.opening.data.variant % targets == target
        ][:limit]

    async def intend(self, chunk: ProviderBatch, evaluation_ids: Sequence[str]) -> bool:
        """Write a chunk down, and that these are in it; False if the batch was stopped or paused since."""
        batch = await self.ledger.batch(chunk.batch_id)
        waiting = set(await self._open_in(chunk.batch_id, ""))
        held = self.ledger.tables.evaluations
        attempts = tuple(held[key].row.cursor.attempt for key in evaluation_ids)
        if batch is None or batch.finished or batch.state != "running":
            return False
        if not waiting.issuperset(evaluation_ids) or attempts != chunk.attempts:
            return False
        for key in evaluation_ids:
            self._told[key].asked_in = chunk.id
        self.chunks[chunk.id] = chunk
        self.counts[chunk.id] = RequestCounts(processing=chunk.size)
        return True

    async def members(self, chunk: ProviderBatch, *, after: str, limit: int) -> list[ProviderBatchMember]:
        """Return a page of those evaluations of a chunk that still wait for its answers."""
        keys = [key for key in await self._open_in(chunk.batch_id, chunk.id) if key > after]
        return await self._asked(keys[:limit])

    async def still_waiting(self, chunk: ProviderBatch, evaluation_ids: Sequence[str]) -> set[str]:
        """Name those of these evaluations that still wait for a chunk's answers."""
        return set(await self._open_in(chunk.batch_id, chunk.id)).intersection(evaluation_ids)

    async def open_chunks(self) -> list[ProviderBatch]:
        """List the chunks that are not done with, of all batches, the oldest first."""
        found = (chunk for chunk in self.chunks.values() if chunk.state in OPEN)
        return sorted(found, key=lambda chunk: (chunk.intended_at, chunk.id))

    async def claim(self, chunk: ProviderBatch, *, now: datetime) -> ProviderBatch | None:
        """Take the right to submit a chunk once more; None if somebody else was first."""
        held = self.chunks[chunk.id]
        if held.state is not ProviderBatchState.INTENDED or held.claimed_at != chunk.claimed_at:
            return None
        return self._put(chunk, claimed_at=now)

    async def submitted(self, chunk: ProviderBatch, provider_id: str, *, now: datetime) -> bool:
        """Write down what the provider calls a chunk; False if that was known, or it is done with."""
        if self.chunks[chunk.id].state is not ProviderBatchState.INTENDED:
            return False
        self._put(
            chunk, state=ProviderBatchState.SUBMITTED, provider_id=provider_id, submitted_at=now, note=""
        )
        return True

    async def known(self, provider_ids: Sequence[str]) -> set[str]:
        """Name those of a provider's batches that belong to some chunk."""
        return {one.provider_id for one in self.chunks.values() if one.provider_id} & set(provider_ids)

    async def seen(
        self, chunk: ProviderBatch, counts: RequestCounts, *, now: datetime, ended: bool
    ) -> None:
        """Write down how a chunk stands at the provider."""
        if self.chunks[chunk.id].state is ProviderBatchState.SUBMITTED:
            self.counts[chunk.id], self.touched[chunk.id] = counts, now
            self._put(
                chunk, note="", state=ProviderBatchState.ENDED if ended else ProviderBatchState.SUBMITTED
            )

    async def noted(self, chunk: ProviderBatch, note: str) -> None:
        """Write down what keeps a chunk; empty: nothing any more."""
        self._put(chunk, note=note)

    async def called_off(self, chunk: ProviderBatch) -> None:
        """Write down that the provider was asked to cancel a chunk."""
        self._put(chunk, called_off=True)

    async def close(self, chunk: ProviderBatch, state: ProviderBatchState, *, now: datetime) -> None:
        """Write down that a chunk is done with; those that still wait for it are asked in another."""
        if self.chunks[chunk.id].state in OPEN:
            self.touched[chunk.id] = now
            self._put(chunk, state=state)
            for key in await self._open_in(chunk.batch_id, chunk.id):
                self._told[key].asked_in = ""

    async def has_groups(self, batch_id: str) -> bool:
        """Say whether evaluations of a batch wait for each other."""
        return bool(await self.ledger.links(await self._open_ids(batch_id)))

    async def change_spec(self, batch_id: str, spec: bytes, *, by: str, reason: str) -> bool:
        """Change what a batch is about, as far as that is possible; False if it is over."""
        return self.ledger.batches.change_spec(spec, BatchEvent(batch_id, "changed", by, reason))

    async def release(self, batch: Batch, *, epochs: Sequence[str], limit: int) -> list[UnpublishedOpening]:
        """Take some that are in no chunk yet out of the line, as published in these epochs."""
        keys = (await self._open_in(batch.batch_id, ""))[:limit]
        for key in keys:
            self._told[key].asked_in = None
        self.ledger.told_apart[batch.batch_id] += len(keys)
        return await self.ledger.release(keys, epochs)

    def _put(self, chunk: ProviderBatch, **changes: object) -> ProviderBatch:
        held = self.chunks[chunk.id] = replace(self.chunks[chunk.id], **changes)  # type: ignore[arg-type]  # fields of a chunk
        return held

    async def _open_in(self, batch_id: str, chunk_id: str) -> list[str]:
        return [key for key in await self._open_ids(batch_id) if self._told[key].asked_in == chunk_id]

    async def _open_ids(self, batch_id: str) -> list[str]:
        return await self.ledger.open_ids(batch_id, after="", limit=len(self.ledger.tables.evaluations))

    async def _asked(self, keys: Iterable[str]) -> list[ProviderBatchMember]:
        found = await self.ledger.openings(list(keys))
        return [ProviderBatchMember(one.evaluation_id, *one.events[0]) for one in found]
