"""Collection of results: each is recorded once, in any order, however often it is read.

Results are read as a stream and recorded in groups, one transaction each. No read position is stored: an
evaluation with a recorded result has moved on, and is skipped. So reading may stop when the window is full,
or at a crash, and start again from the beginning.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from itertools import islice

from coordinator.attempt_opening import spec_of
from coordinator.provider_batches import telemetry
from coordinator.provider_batches.context import ProviderBatchContext, is_cancelled
from coordinator.provider_batches.outcomes import CollectionRun, Outcome, record
from coordinator.provider_batches.provider import BatchProvider, BatchResult
from coordinator.provider_batches.requests import members_of, number_in
from coordinator.provider_batches.result_reader import no_result, price_in_batches, read
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog import tracing
from projections.ledger.batch import Batch
from projections.ledger.provider_batches import ProviderBatch

MAX_GROUP = 4 * p.MAX_TEXT
"""Characters of answers in one group, before the last of them."""


class ResultCollector:
    """Records the results of provider batches."""

    def __init__(self, context: ProviderBatchContext) -> None:
        self._context = context

    def has_capacity(self, batch: Batch) -> bool:
        """Whether the window has room; always so for a cancelled batch, whose results need no executor."""
        room = self._context.window - batch.in_flight
        return is_cancelled(batch) or room >= self._context.least_room or batch.in_flight == 0

    async def collect(self, provider_batch: ProviderBatch, batch: Batch, provider: BatchProvider) -> bool:
        """Record results while the window has room; True once all of them are recorded."""
        with tracing.alone("eval.batch_api.process_results", batch_id=batch.batch_id) as span:
            span.set_attribute("result_count", provider_batch.size)
            return await self._collect(provider_batch, batch, provider)

    async def _collect(self, provider_batch: ProviderBatch, batch: Batch, provider: BatchProvider) -> bool:
        this = CollectionRun(provider_batch, spec_of(batch), dict(members_of(provider_batch)))
        room = self._context.window - batch.in_flight
        async with aclosing(self._groups(this, provider)) as groups:
            async for group in groups:
                if self._context.reservations:
                    self._context.reservations.observe(provider_batch, group.values())
                outcomes = await self._to_be_recorded(group, provider_batch, batch)
                if not is_cancelled(batch):
                    fitting = dict(islice(outcomes.items(), max(0, room)))
                    room -= len(fitting)
                    await self._record(fitting, this, batch)
                    if len(fitting) < len(outcomes):
                        return False
                else:
                    await self._record(outcomes, this, batch)
        await self._record_missing(this, batch)
        return True

    async def _groups(
        self, this: CollectionRun, provider: BatchProvider
    ) -> AsyncGenerator[dict[str, Outcome], None]:
        provider_batch, target = this.provider_batch, this.spec.targets[this.provider_batch.target]
        price = price_in_batches(target, self._context.ports.environ)
        group: dict[str, Outcome] = {}
        size = 0
        async with aclosing(provider.results(provider_batch.provider_id or "")) as results:
            async for result in results:
                key = _evaluation(provider_batch, result)
                if key in this.attempts:
                    group[key] = read(result, target, price)
                    size += _characters(group[key])
                if len(group) >= self._context.settings.page or size >= MAX_GROUP:
                    yield group
                    group, size = {}, 0
        if group:
            yield group

    async def _to_be_recorded(
        self, group: Mapping[str, Outcome], provider_batch: ProviderBatch, batch: Batch
    ) -> dict[str, Outcome]:
        if is_cancelled(batch):
            return dict(group)
        waiting = await self._context.repository.filter_pending(provider_batch, list(group))
        return {key: outcome for key, outcome in group.items() if key in waiting}

    async def _record(self, outcomes: Mapping[str, Outcome], this: CollectionRun, batch: Batch) -> None:
        if outcomes:
            await self._context.epochs.refresh()
            decide = record(self._context.attempt_opener.factory, outcomes, this)
            await self._context.attempt_opener.open(batch, sorted(outcomes), decide)
            telemetry.count_results(this, outcomes.values())

    async def _record_missing(self, this: CollectionRun, batch: Batch) -> None:
        """Record requests without a result like requests that the provider did not process."""
        page, missing = (
            self._context.settings.page,
            no_result(this.provider_batch.provider_id or this.provider_batch.id),
        )
        while left := await self._context.repository.list_pending(
            this.provider_batch, after="", limit=page
        ):
            await self._record({one.evaluation_id: missing for one in left}, this, batch)


def _characters(outcome: Outcome) -> int:
    return len(outcome.output) if isinstance(outcome, p.Answer) else 0


def _evaluation(provider_batch: ProviderBatch, result: BatchResult) -> str:
    number = number_in(provider_batch, result.custom_id)
    return "" if number is None else evaluation_id(provider_batch.batch_id, number)
