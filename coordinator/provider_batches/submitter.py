"""Submission of the next provider batch of each batch, and the pause if a provider rejects it."""

import logging
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

from coordinator.attempt_opening import layout_of, spec_of
from coordinator.provider_batches import telemetry
from coordinator.provider_batches.builder import ProviderBatchBuilder, RequestsChanged
from coordinator.provider_batches.context import ProviderBatchContext
from coordinator.provider_batches.poll_schedule import PollSchedule
from coordinator.provider_batches.provider import (
    BatchProvider,
    NoResponse,
    ProviderRequestFailed,
    SubmissionRejected,
)
from coordinator.provider_batches.recovery import SubmissionRecovery
from coordinator.publisher import Publisher
from eventlog import tracing
from eventlog.log import LogUnavailable
from projections.database.errors import DatabaseUnavailable
from projections.ledger.batch import Batch
from projections.ledger.provider_batches import ProviderBatch, ProviderBatchState
from taskqueue.tasks import QueueUnavailable

logger = logging.getLogger(__name__)

AWAY = (LogUnavailable, DatabaseUnavailable, QueueUnavailable)
LONGEST_LULL = timedelta(seconds=5)
"""The longest interval between two checks whether a batch has requests to submit."""
RELEASE_AGAIN = 60.0
"""Seconds between two searches for unassigned requests of a batch that uses no provider batches.

An operator may have switched provider batches on and off again between two cycles.
"""


class ProviderBatchSubmitter:
    """Submits the waiting requests of all running batches."""

    def __init__(
        self,
        context: ProviderBatchContext,
        publisher: Publisher,
        recovery: SubmissionRecovery,
        *,
        clock: Callable[[], float],
        jitter: Callable[[], float],
    ) -> None:
        self._context = context
        self._publisher = publisher
        self._recovery = recovery
        self._clock = clock
        self._builder = ProviderBatchBuilder(context)
        lull = min(LONGEST_LULL, context.settings.longest_poll)
        self._idle_schedule = PollSchedule(replace(context.settings, longest_poll=lull), jitter)
        self._released: dict[str, tuple[bytes, float]] = {}
        """Batches without requests for a provider: the spec at that time, and when it was checked."""

    def expect(self, batch_id: str) -> None:
        """Check a batch in the next cycle: there may be requests to submit."""
        self._idle_schedule.reset(batch_id)

    async def run_cycle(self) -> None:
        """Submit the waiting requests of running batches."""
        batches = await self._context.ledger.unfinished(self._context.run_id)
        for batch in batches:
            if batch.state == "running" and self._idle_schedule.is_due(batch.batch_id, self._clock()):
                await self._guarded(batch)
        open_ids = {batch.batch_id for batch in batches}
        self._idle_schedule.retain(open_ids)
        self._released = {key: spec for key, spec in self._released.items() if key in open_ids}

    async def _guarded(self, batch: Batch) -> None:
        try:
            sent = await self._send(batch)
        except ProviderRequestFailed as failure:
            self._idle_schedule.wait(batch.batch_id, self._clock(), at_least=failure.retry_after)
            if isinstance(failure, SubmissionRejected) and not failure.is_passing:
                await self._pause(batch, str(failure))
        except AWAY:
            raise
        except Exception:  # an invalid batch must not block the others
            self._idle_schedule.wait(batch.batch_id, self._clock())
            logger.exception("building a provider batch failed", extra={"batch_id": batch.batch_id})
        else:
            if sent:
                self._idle_schedule.reset(batch.batch_id)
            else:
                self._idle_schedule.wait(batch.batch_id, self._clock())

    async def _send(self, batch: Batch) -> bool:
        """Build a provider batch and submit it; False if there are no requests."""
        if spec_of(batch).batch_api is None:
            await self._release(batch)
            return False
        if (formed := await self._builder.form(batch)) is None:
            return False
        provider_batch, provider = formed
        await self.submit(provider_batch, batch, provider)
        return True

    async def submit(self, provider_batch: ProviderBatch, batch: Batch, provider: BatchProvider) -> None:
        """Submit a stored provider batch; if the provider created none, its requests go to another one."""
        try:
            with tracing.alone("eval.batch_api.submit", batch_id=batch.batch_id) as span:
                span.set_attribute("request_count", provider_batch.size)
                provider_id = await self._builder.submit(provider_batch, batch, provider)
                span.set_attribute("provider_batch_id", provider_id)
        except (SubmissionRejected, RequestsChanged) as refusal:
            await self.abandon(provider_batch)
            if isinstance(refusal, SubmissionRejected):
                raise
        except NoResponse as failure:
            if failure.has_ended:
                self._recovery.record_end(provider_batch)
            raise
        else:
            fields = {
                "batch_id": batch.batch_id,
                "provider_id": provider_id,
                "requests": provider_batch.size,
            }
            logger.info("provider batch submitted", extra=fields)
            telemetry.count_submitted(spec_of(batch).targets[provider_batch.target].type)

    async def abandon(self, provider_batch: ProviderBatch) -> None:
        """Close a provider batch that was not created; another one takes its requests."""
        await self._context.repository.close(
            provider_batch, ProviderBatchState.ABANDONED, now=self._context.now()
        )
        if self._context.reservations:
            self._context.reservations.close(provider_batch)
        self.expect(provider_batch.batch_id)

    async def _pause(self, batch: Batch, why: str) -> None:
        logger.warning("batch paused", extra={"batch_id": batch.batch_id, "reason": why})
        await self._context.ledger.request_state(batch.batch_id, "paused", by="coordinator", reason=why)

    async def _release(self, batch: Batch) -> None:
        """Publish to executors the requests of a batch that no longer uses provider batches."""
        spec, seen_at = self._released.get(batch.batch_id, (b"", 0.0))
        if spec == batch.spec and self._clock() - seen_at < RELEASE_AGAIN:
            return
        room = self._context.window - batch.in_flight
        while room > 0:
            epochs = await self._context.epochs.refresh()
            limit = min(room, self._context.settings.page)
            released = await self._context.repository.release(batch, epochs=epochs, limit=limit)
            in_epochs = ((one.events, self._context.epochs.of(one.evaluation_id)) for one in released)
            await self._publisher.publish(layout_of(batch), in_epochs)
            room -= len(released)
            if len(released) < limit:
                self._released[batch.batch_id] = batch.spec, self._clock()
                return
