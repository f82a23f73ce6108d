"""Provider batches in memory, beside the ledger there: the same contract, for unit tests and simulation."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from eventlog import payloads as p
from projections.ledger.batch import Batch
from projections.ledger.contract import UnpublishedOpening
from projections.ledger.memory import MemoryLedger
from projections.ledger.memory_batches import BatchEvent
from projections.ledger.provider_batches import (
    PendingRequest,
    ProviderBatch,
    ProviderBatchState,
    RequestCounts,
)

OPEN = frozenset({ProviderBatchState.INTENDED, ProviderBatchState.SUBMITTED, ProviderBatchState.ENDED})


class MemoryProviderBatchRepository:
    """`ProviderBatchRepository` without a server; no call yields to another before it is done."""

    def __init__(self, ledger: MemoryLedger) -> None:
        self.ledger = ledger
        self.provider_batches: dict[str, ProviderBatch] = {}
        self.counts: dict[str, RequestCounts] = {}
        self.touched: dict[str, datetime] = {}
        """When each was last polled."""
        self._publications = ledger._publications  # noqa: SLF001 - two parts of one ledger

    async def list_unassigned(
        self, batch: Batch, *, target: int, targets: int, after: str, limit: int
    ) -> list[PendingRequest]:
        found = await self._asked(await self._open_in(batch.batch_id, ""))
        return [
            one
            for one in found
            if one.evaluation_id > after
            and isinstance(one.opening.data, p.Queued)
            and one.opening.data.variant % targets == target
        ][:limit]

    async def record_intent(self, provider_batch: ProviderBatch, evaluation_ids: Sequence[str]) -> bool:
        batch = await self.ledger.batch(provider_batch.batch_id)
        waiting = set(await self._open_in(provider_batch.batch_id, ""))
        held = self.ledger.tables.evaluations
        attempts = tuple(held[key].row.cursor.attempt for key in evaluation_ids)
        if batch is None or batch.finished or batch.state != "running":
            return False
        if not waiting.issuperset(evaluation_ids) or attempts != provider_batch.attempts:
            return False
        for key in evaluation_ids:
            self._publications[key].asked_in = provider_batch.id
        self.provider_batches[provider_batch.id] = provider_batch
        self.counts[provider_batch.id] = RequestCounts(processing=provider_batch.size)
        return True

    async def list_pending(
        self, provider_batch: ProviderBatch, *, after: str, limit: int
    ) -> list[PendingRequest]:
        keys = [
            key for key in await self._open_in(provider_batch.batch_id, provider_batch.id) if key > after
        ]
        return await self._asked(keys[:limit])

    async def filter_pending(
        self, provider_batch: ProviderBatch, evaluation_ids: Sequence[str]
    ) -> set[str]:
        return set(await self._open_in(provider_batch.batch_id, provider_batch.id)).intersection(
            evaluation_ids
        )

    async def list_open(self) -> list[ProviderBatch]:
        found = (
            provider_batch
            for provider_batch in self.provider_batches.values()
            if provider_batch.state in OPEN
        )
        return sorted(found, key=lambda provider_batch: (provider_batch.intended_at, provider_batch.id))

    async def claim(self, provider_batch: ProviderBatch, *, now: datetime) -> ProviderBatch | None:
        held = self.provider_batches[provider_batch.id]
        if held.state is not ProviderBatchState.INTENDED or held.claimed_at != provider_batch.claimed_at:
            return None
        return self._put(provider_batch, claimed_at=now)

    async def record_submission(
        self, provider_batch: ProviderBatch, provider_id: str, *, now: datetime
    ) -> bool:
        if self.provider_batches[provider_batch.id].state is not ProviderBatchState.INTENDED:
            return False
        self._put(
            provider_batch,
            state=ProviderBatchState.SUBMITTED,
            provider_id=provider_id,
            submitted_at=now,
            note="",
        )
        return True

    async def filter_known(self, provider_ids: Sequence[str]) -> set[str]:
        return {one.provider_id for one in self.provider_batches.values() if one.provider_id} & set(
            provider_ids
        )

    async def record_counts(
        self, provider_batch: ProviderBatch, counts: RequestCounts, *, now: datetime, ended: bool
    ) -> None:
        if self.provider_batches[provider_batch.id].state is ProviderBatchState.SUBMITTED:
            self.counts[provider_batch.id], self.touched[provider_batch.id] = counts, now
            self._put(
                provider_batch,
                note="",
                state=ProviderBatchState.ENDED if ended else ProviderBatchState.SUBMITTED,
            )

    async def record_note(self, provider_batch: ProviderBatch, note: str) -> None:
        self._put(provider_batch, note=note)

    async def record_cancel_request(self, provider_batch: ProviderBatch) -> None:
        self._put(provider_batch, called_off=True)

    async def close(
        self, provider_batch: ProviderBatch, state: ProviderBatchState, *, now: datetime
    ) -> None:
        if self.provider_batches[provider_batch.id].state in OPEN:
            self.touched[provider_batch.id] = now
            self._put(provider_batch, state=state)
            for key in await self._open_in(provider_batch.batch_id, provider_batch.id):
                self._publications[key].asked_in = ""

    async def has_groups(self, batch_id: str) -> bool:
        return bool(await self.ledger.links(await self._open_ids(batch_id)))

    async def update_spec(self, batch_id: str, spec: bytes, *, by: str, reason: str) -> bool:
        return self.ledger.batches.change_spec(spec, BatchEvent(batch_id, "changed", by, reason))

    async def release(self, batch: Batch, *, epochs: Sequence[str], limit: int) -> list[UnpublishedOpening]:
        keys = (await self._open_in(batch.batch_id, ""))[:limit]
        for key in keys:
            self._publications[key].asked_in = None
        self.ledger.published_apart[batch.batch_id] += len(keys)
        return await self.ledger.release(keys, epochs)

    def _put(self, provider_batch: ProviderBatch, **changes: object) -> ProviderBatch:
        stored = self.provider_batches[provider_batch.id]
        changed = replace(stored, **changes)  # type: ignore[arg-type]  # fields of a provider batch
        self.provider_batches[provider_batch.id] = changed
        return changed

    async def _open_in(self, batch_id: str, provider_batch_id: str) -> list[str]:
        return [
            key
            for key in await self._open_ids(batch_id)
            if self._publications[key].asked_in == provider_batch_id
        ]

    async def _open_ids(self, batch_id: str) -> list[str]:
        return await self.ledger.open_ids(batch_id, after="", limit=len(self.ledger.tables.evaluations))

    async def _asked(self, keys: Iterable[str]) -> list[PendingRequest]:
        found = await self.ledger.openings(list(keys))
        return [PendingRequest(one.evaluation_id, *one.events[0]) for one in found]
