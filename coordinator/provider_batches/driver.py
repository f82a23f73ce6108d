"""The control loop of provider batches: build, submit, poll, collect.

    waiting evaluations ──form──► intended ──submit──► submitted ──poll──► ended ──collect──► collected
                                      │ no response        │ cancel requested          └──► cancelled
                                      └──find──► submitted, or submitted again

All durable state is in the ledger, so a crash at any point is safe: the driver searches the provider for an
intended provider batch before it submits it again, polls a submitted one again, and reads results again. In
memory it keeps only poll schedules.
"""

import logging
from collections.abc import Callable, Sequence

from coordinator.attempt_opening import spec_of
from coordinator.provider_batches import telemetry
from coordinator.provider_batches.canceller import TaskCanceller
from coordinator.provider_batches.collector import ResultCollector
from coordinator.provider_batches.context import ProviderBatchContext, is_cancelled
from coordinator.provider_batches.poll_schedule import PollSchedule
from coordinator.provider_batches.provider import BatchProvider, ProviderRequestFailed
from coordinator.provider_batches.recovery import (
    SubmissionFound,
    SubmissionMissing,
    SubmissionRecovery,
    SubmissionUnclear,
)
from coordinator.provider_batches.submitter import AWAY, ProviderBatchSubmitter
from coordinator.publisher import Publisher
from eventlog import tracing
from projections.ledger.batch import Batch
from projections.ledger.provider_batches import ProviderBatch, ProviderBatchRepository, ProviderBatchState

logger = logging.getLogger(__name__)


class ProviderBatchDriver:
    """Runs the cycles of all provider batches."""

    def __init__(
        self,
        context: ProviderBatchContext,
        publisher: Publisher,
        canceller: TaskCanceller,
        *,
        clock: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        self.canceller = canceller
        self._context = context
        self._clock = clock
        self._recovery, self._collector = SubmissionRecovery(context), ResultCollector(context)
        self._submitter = ProviderBatchSubmitter(
            *(context, publisher, self._recovery), clock=clock, jitter=jitter
        )
        self._schedule = PollSchedule(context.settings, jitter)

    @property
    def repository(self) -> ProviderBatchRepository:
        """The ledger's repository of provider batches."""
        return self._context.repository

    async def run_cycle(self) -> None:
        """Process every open provider batch once, and build further ones."""
        provider_batches = await self._led_here(await self._context.repository.list_open())
        if self._context.reservations:
            await self._context.reservations.declare(provider_batches)
        for provider_batch in provider_batches:
            if self._schedule.is_due(provider_batch.id, self._clock()):
                await self._guarded(provider_batch)
        open_ids = {provider_batch.id for provider_batch in provider_batches}
        self._schedule.retain(open_ids)
        self._recovery.retain(open_ids)
        await self._submitter.run_cycle()

    async def _led_here(self, provider_batches: Sequence[ProviderBatch]) -> list[ProviderBatch]:
        """Exclude provider batches of another run: their keys are in that run's environment."""
        batch_ids = {provider_batch.batch_id for provider_batch in provider_batches}
        if not batch_ids:
            return []
        elsewhere = await self._context.ledger.owned_by_other_runs(sorted(batch_ids), self._context.run_id)
        return [
            provider_batch
            for provider_batch in provider_batches
            if provider_batch.batch_id not in elsewhere
        ]

    async def cancel_open(self, batch_id: str) -> None:
        """Request cancellation of a batch's provider batches; the next cycle repeats what fails."""
        for provider_batch in await self._context.repository.list_open():
            if provider_batch.batch_id == batch_id and provider_batch.state is ProviderBatchState.SUBMITTED:
                await self._guarded(provider_batch)

    # -- one provider batch

    async def _guarded(self, provider_batch: ProviderBatch) -> None:
        """Process a provider batch; an error does not block the others, and is noted once."""
        try:
            await self._process(provider_batch)
        except ProviderRequestFailed as failure:
            self._schedule.wait(provider_batch.id, self._clock(), at_least=failure.retry_after)
            await self._note(provider_batch, str(failure))
        except AWAY:
            raise
        except Exception as error:
            self._schedule.wait(provider_batch.id, self._clock())
            logger.exception("processing a provider batch failed", extra=_named(provider_batch))
            await self._note(provider_batch, f"{type(error).__name__}; see the coordinator's log")

    async def _note(self, provider_batch: ProviderBatch, note: str) -> None:
        if provider_batch.note != note:
            logger.warning("provider batch waits", extra={**_named(provider_batch), "why": note})
            await self._context.repository.record_note(provider_batch, note)

    async def _process(self, provider_batch: ProviderBatch) -> None:
        batch = await self._context.ledger.batch(provider_batch.batch_id)
        if batch is None:
            raise LookupError(f"{provider_batch.batch_id} is missing in the ledger")
        if provider_batch.state is ProviderBatchState.ENDED and not self._collector.has_capacity(batch):
            return
        provider = self._context.ports.provider_of(spec_of(batch).targets[provider_batch.target])
        match provider_batch.state:
            case ProviderBatchState.INTENDED:
                await self._find(provider_batch, batch, provider)
            case ProviderBatchState.SUBMITTED:
                await self._poll(provider_batch, batch, provider)
            case ProviderBatchState.ENDED:
                await self._collect(provider_batch, batch, provider)
            case _:
                raise LookupError(f"{provider_batch.id} is {provider_batch.state}")

    async def _find(self, provider_batch: ProviderBatch, batch: Batch, provider: BatchProvider) -> None:
        match await self._recovery.find(provider_batch, provider):
            case SubmissionFound(provider_id=provider_id):
                fields = {**_named(provider_batch), "provider_id": provider_id}
                logger.info("provider batch found at the provider", extra=fields)
                await self._context.repository.record_submission(
                    provider_batch, provider_id, now=self._context.now()
                )
                telemetry.count_submitted(_provider_of(provider_batch, batch))
                self._schedule.reset(provider_batch.id)
            case SubmissionUnclear(why=why, decided_in=decided_in):
                self._schedule.wait(provider_batch.id, self._clock(), at_most=decided_in)
                await self._note(provider_batch, why)
            case SubmissionMissing() if batch.finished or is_cancelled(batch):
                await self._submitter.abandon(provider_batch)
            case SubmissionMissing() if batch.state == "running":
                await self._submit_again(provider_batch, batch, provider)
            case SubmissionMissing():
                self._schedule.wait(provider_batch.id, self._clock())  # paused: nothing new is submitted

    async def _submit_again(
        self, provider_batch: ProviderBatch, batch: Batch, provider: BatchProvider
    ) -> None:
        logger.info(
            "submitting a provider batch again: the provider has none", extra=_named(provider_batch)
        )
        if claimed := await self._context.repository.claim(provider_batch, now=self._context.now()):
            await self._submitter.submit(claimed, batch, provider)

    async def _poll(self, provider_batch: ProviderBatch, batch: Batch, provider: BatchProvider) -> None:
        provider_id = provider_batch.provider_id or ""
        with tracing.alone("eval.batch_api.poll", provider_batch_id=provider_id) as span:
            seen = await provider.retrieve(provider_id)
            span.set_attribute("status", "ended" if seen.ended else "in_progress")
        now = self._context.now()
        await self._context.repository.record_counts(provider_batch, seen.counts, now=now, ended=seen.ended)
        if seen.ended:
            telemetry.count_ended(_provider_of(provider_batch, batch), provider_batch, now)
            self._schedule.reset(provider_batch.id)
            return
        if is_cancelled(batch) and not provider_batch.called_off:  # after its end it can't be cancelled
            await provider.cancel(provider_id)
            await self._context.repository.record_cancel_request(provider_batch)
        self._schedule.wait(provider_batch.id, self._clock())

    async def _collect(self, provider_batch: ProviderBatch, batch: Batch, provider: BatchProvider) -> None:
        if await self._collector.collect(provider_batch, batch, provider):
            state = ProviderBatchState.CANCELLED if is_cancelled(batch) else ProviderBatchState.COLLECTED
            await self._context.repository.close(provider_batch, state, now=self._context.now())
            if self._context.reservations:
                self._context.reservations.close(provider_batch)
            self._submitter.expect(batch.batch_id)
            logger.info("provider batch closed", extra={**_named(provider_batch), "state": state.value})


def _named(provider_batch: ProviderBatch) -> dict[str, str]:
    return {"provider_batch": provider_batch.id, "batch_id": provider_batch.batch_id}


def _provider_of(provider_batch: ProviderBatch, batch: Batch) -> str:
    return spec_of(batch).targets[provider_batch.target].type
