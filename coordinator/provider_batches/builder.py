"""Building of provider batches: collected page by page, stored in the ledger, and only then submitted.

Requests are encoded twice, once to count and digest them, once to send them, so they are never held in
memory as a whole. Their source, the openings, is immutable.
"""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from coordinator import decisions
from coordinator.attempt_opening import spec_of
from coordinator.provider_batches.context import ProviderBatchContext
from coordinator.provider_batches.provider import BatchProvider, NoResponse
from coordinator.provider_batches.requests import (
    UnsupportedRequest,
    has_batches,
    number_of,
    params_of,
    request,
)
from coordinator.provider_batches.reservations import Allowance
from domain.batch_spec import BatchSpec
from eventlog import payloads as p
from projections.ledger.batch import Batch
from projections.ledger.provider_batches import PendingRequest, ProviderBatch
from taskqueue.budget.contract import NOTHING, Amount

OPENING, CLOSING = b'{"requests":[', b"]}"
PIECE = 64 * 1024


class RequestsChanged(Exception):  # noqa: N818 - a fact, not a defect
    """The requests differ from the stored digest; nothing was submitted."""


@dataclass(slots=True)
class ProviderBatchDraft:
    """A provider batch under construction."""

    provider_batch_id: str
    ids: list[str] = field(default_factory=list)
    attempts: list[int] = field(default_factory=list)
    unsupported: dict[str, p.ErrorDetail] = field(default_factory=dict)
    length: int = len(OPENING) + len(CLOSING)
    is_full: bool = False
    digest: Any = field(default_factory=sha256)
    allowance: Allowance = field(default_factory=Allowance)

    def add(self, pending: PendingRequest, body: bytes) -> None:
        """Add a request."""
        self.length += len(body) + bool(self.ids)
        self.digest.update(body)
        self.ids.append(pending.evaluation_id)
        self.attempts.append(pending.opening.attempt)


class ProviderBatchBuilder:
    """Builds provider batches, and submits them."""

    def __init__(self, context: ProviderBatchContext) -> None:
        self._context = context
        self._settings = context.settings

    async def form(self, batch: Batch) -> tuple[ProviderBatch, BatchProvider] | None:
        """Store the next provider batch to submit, if it is full or complete; None otherwise."""
        spec = spec_of(batch)
        for target, each in enumerate(spec.targets):
            if has_batches(each):
                draft = await self._gather(batch, spec, target)
                await self._give_up(batch, draft)
                if draft.ids and (draft.is_full or not await self._has_more_to_come(batch)):
                    reserved = await self._reserved(batch, draft)
                    if reserved is None:  # the account has rejected it, and the batch will pause
                        continue
                    provider = self._context.ports.provider_of(each)
                    provider_batch = await self._intend(batch, target, draft, reserved)
                    return (provider_batch, provider) if provider_batch else None
        return None

    async def _gather(self, batch: Batch, spec: BatchSpec, target: int) -> ProviderBatchDraft:
        draft, after, page = ProviderBatchDraft(self._context.new_id()), "", self._settings.page
        if reservations := self._context.reservations:
            draft.allowance = await reservations.allowance(batch, target)
        which = {"target": target, "targets": len(spec.targets), "limit": page}
        while found := await self._context.repository.list_unassigned(batch, after=after, **which):
            after = found[-1].evaluation_id
            for pending in found:
                self._take(draft, pending, spec)
                if draft.is_full:
                    return draft
        return draft

    def _take(self, draft: ProviderBatchDraft, pending: PendingRequest, spec: BatchSpec) -> None:
        try:
            body = request(draft.provider_batch_id, pending, spec)
        except UnsupportedRequest as error:
            draft.unsupported[pending.evaluation_id] = error.fault
            return
        if draft.ids and draft.length + len(body) + 1 > self._settings.max_bytes:
            draft.is_full = True
            return
        if not self._fits_budget(draft, pending, spec):
            draft.is_full = True
            return
        draft.add(pending, body)
        draft.is_full = len(draft.ids) >= self._settings.max_requests

    def _fits_budget(self, draft: ProviderBatchDraft, pending: PendingRequest, spec: BatchSpec) -> bool:
        if not draft.allowance.is_limited:
            return True
        opening = pending.opening.data
        target = spec.variants[opening.variant].target if isinstance(opening, p.Queued) else spec.targets[0]
        return draft.allowance.take(params_of(pending, spec), target, self._context.ports.environ)

    async def _reserved(self, batch: Batch, draft: ProviderBatchDraft) -> Amount | None:
        if self._context.reservations is None:
            return NOTHING
        return await self._context.reservations.reserve(batch, draft.provider_batch_id, draft.allowance)

    async def _give_up(self, batch: Batch, draft: ProviderBatchDraft) -> None:
        if draft.unsupported:
            await self._context.epochs.refresh()
            give_up = decisions.give_up(self._context.attempt_opener.factory, draft.unsupported)
            await self._context.attempt_opener.open(batch, sorted(draft.unsupported), give_up)

    async def _has_more_to_come(self, batch: Batch) -> bool:
        """Whether the window has not reached all evaluations yet, so that further requests may follow."""
        fresh = await self._context.ledger.batch(batch.batch_id) or batch
        ahead, _ = await self._context.ledger.next_window(fresh, limit=1)
        return bool(ahead)

    async def _intend(
        self, batch: Batch, target: int, draft: ProviderBatchDraft, reserved: Amount
    ) -> ProviderBatch | None:
        now = self._context.now()
        provider_batch = ProviderBatch(
            draft.provider_batch_id,
            batch.batch_id,
            target,
            tuple(map(number_of, draft.ids)),
            tuple(draft.attempts),
            draft.length,
            draft.digest.hexdigest(),
            intended_at=now,
            claimed_at=now,
            reserved_cost=reserved.cost,
            reserved_tokens=reserved.tokens,
        )
        is_recorded = await self._context.repository.record_intent(provider_batch, draft.ids)
        return provider_batch if is_recorded else None

    async def submit(self, provider_batch: ProviderBatch, batch: Batch, provider: BatchProvider) -> str:
        """Submit a stored provider batch, and store the provider's id of it.

        Raises `SubmissionRejected` or `RequestsChanged` if nothing was created, `NoResponse` if the result
        is unknown.
        """
        body = _Body(self._context, provider_batch, spec_of(batch))
        try:
            async with asyncio.timeout(self._settings.submit_timeout.total_seconds()):
                seen = await provider.create(body.pieces(), length=provider_batch.bytes)
        except TimeoutError:
            raise NoResponse("the provider did not confirm the submission in time") from None
        except NoResponse:
            if body.is_changed:  # the body was never sent completely
                raise RequestsChanged(provider_batch.id) from None
            raise
        await self._context.repository.record_submission(
            provider_batch, seen.provider_id, now=self._context.now()
        )
        return seen.provider_id


class _Body:
    """The JSON of a submission, as a stream of pieces."""

    def __init__(
        self, context: ProviderBatchContext, provider_batch: ProviderBatch, spec: BatchSpec
    ) -> None:
        self._context, self._provider_batch, self._spec = context, provider_batch, spec
        self.is_changed = False

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the pieces; raises before the last one if they differ from the stored digest."""
        digest, piece, comma = sha256(), bytearray(OPENING), b""
        async for body in self._requests():
            digest.update(body)
            piece += comma + body
            comma = b","
            if len(piece) >= PIECE:
                yield bytes(piece)
                piece.clear()
        if digest.hexdigest() != self._provider_batch.digest:
            self.is_changed = True
            raise RequestsChanged(self._provider_batch.id)
        yield bytes(piece + CLOSING)

    async def _requests(self) -> AsyncIterator[bytes]:
        after, page = "", self._context.settings.page
        while found := await self._context.repository.list_pending(
            self._provider_batch, after=after, limit=page
        ):
            after = found[-1].evaluation_id
            for pending in found:
                yield request(self._provider_batch.id, pending, self._spec)
