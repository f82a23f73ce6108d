"""Provider batches, round after round: formed, submitted, looked at, collected.

    evaluations that wait ──form──► intended ──submit──► submitted ──poll──► ended ──collect──► collected
                                        │ no reply            │ called off               └──► cancelled
                                        └──find──► submitted, or submitted again

All it must not forget is in the ledger, so it may die anywhere: an intended chunk is looked for before it
is submitted again, a submitted one is looked at again, results are read again. What it keeps in memory is
patience.
"""

import logging
from collections.abc import Callable, Sequence

from coordinator.opening import spec_of
from coordinator.provider_batches import telemetry
from coordinator.provider_batches.collecting import Collecting
from coordinator.provider_batches.desk import Desk, is_called_off
from coordinator.provider_batches.finding import Finding, Found, Missing, Unclear
from coordinator.provider_batches.pacing import Patience
from coordinator.provider_batches.provider import BatchProvider, ProviderTrouble
from coordinator.provider_batches.sending import AWAY, Sending
from coordinator.provider_batches.withdrawing import Withdrawing
from coordinator.publishing import Publisher
from eventlog import tracing
from projections.ledger.contract import Batch
from projections.ledger.provider_batches import ProviderBatch, ProviderBatchRepository, ProviderBatchState

logger = logging.getLogger(__name__)


class ProviderBatches:
    """Looks after everything that is asked through provider batches."""

    def __init__(
        self,
        desk: Desk,
        publisher: Publisher,
        withdrawing: Withdrawing,
        *,
        clock: Callable[[], float],
        luck: Callable[[], float],
    ) -> None:
        self.withdrawing = withdrawing
        self._desk = desk
        self._clock = clock
        self._finding, self._collecting = Finding(desk), Collecting(desk)
        self._sending = Sending(desk, publisher, clock=clock, luck=luck)
        self._patience = Patience(desk.settings, luck)

    @property
    def books(self) -> ProviderBatchRepository:
        """What the ledger knows of provider batches."""
        return self._desk.books

    async def go_round(self) -> None:
        """Do for each provider batch what is to be done next, and form more."""
        chunks = await self._led_here(await self._desk.books.open_chunks())
        if self._desk.reservations:
            await self._desk.reservations.declare(chunks)
        for chunk in chunks:
            if self._patience.is_due(chunk.id, self._clock()):
                await self._guarded(chunk)
        self._patience.forget_all_but({chunk.id for chunk in chunks})
        await self._sending.go_round()

    async def _led_here(self, chunks: Sequence[ProviderBatch]) -> list[ProviderBatch]:
        """Leave out what another run asks: the keys for it are in that run's environment."""
        batch_ids = {chunk.batch_id for chunk in chunks}
        if not batch_ids:
            return []
        elsewhere = await self._desk.ledger.led_elsewhere(sorted(batch_ids), self._desk.run_id)
        return [chunk for chunk in chunks if chunk.batch_id not in elsewhere]

    async def call_off(self, batch_id: str) -> None:
        """Ask providers to cancel what a batch has there; whatever fails is done by the next round."""
        for chunk in await self._desk.books.open_chunks():
            if chunk.batch_id == batch_id and chunk.state is ProviderBatchState.SUBMITTED:
                await self._guarded(chunk)

    # -- what was intended

    async def _guarded(self, chunk: ProviderBatch) -> None:
        """Tend a chunk; what goes wrong with it stops nothing else, and is told once."""
        try:
            await self._tend(chunk)
        except ProviderTrouble as trouble:
            self._patience.wait(chunk.id, self._clock(), at_least=trouble.retry_after)
            await self._note(chunk, str(trouble))
        except AWAY:
            raise
        except Exception as error:
            self._patience.wait(chunk.id, self._clock())
            logger.exception("could not tend a provider batch", extra=_named(chunk))
            await self._note(chunk, f"{type(error).__name__}; see the coordinator's log")

    async def _note(self, chunk: ProviderBatch, note: str) -> None:
        if chunk.note != note:
            logger.warning("a provider batch has to wait", extra={**_named(chunk), "why": note})
            await self._desk.books.noted(chunk, note)

    async def _tend(self, chunk: ProviderBatch) -> None:
        batch = await self._desk.ledger.batch(chunk.batch_id)
        if batch is None:
            raise LookupError(f"{chunk.batch_id} is gone")
        if chunk.state is ProviderBatchState.ENDED and not self._collecting.has_room(batch):
            return
        provider = self._desk.ports.provider_of(spec_of(batch).targets[chunk.target])
        match chunk.state:
            case ProviderBatchState.INTENDED:
                await self._find(chunk, batch, provider)
            case ProviderBatchState.SUBMITTED:
                await self._poll(chunk, batch, provider)
            case ProviderBatchState.ENDED:
                await self._collect(chunk, batch, provider)
            case _:
                raise LookupError(f"{chunk.id} is {chunk.state}")

    async def _find(self, chunk: ProviderBatch, batch: Batch, provider: BatchProvider) -> None:
        match await self._finding.find(chunk, provider):
            case Found(provider_id=provider_id):
                told = {**_named(chunk), "provider_id": provider_id}
                logger.info("a provider batch was found again", extra=told)
                await self._desk.books.submitted(chunk, provider_id, now=self._desk.now())
                telemetry.count_submitted(_provider_of(chunk, batch))
                self._patience.reset(chunk.id)
            case Unclear(why=why):
                self._patience.wait(chunk.id, self._clock())
                await self._note(chunk, why)
            case Missing() if batch.finished or is_called_off(batch):
                await self._sending.abandon(chunk)
            case Missing() if batch.state == "running":
                await self._submit_again(chunk, batch, provider)
            case Missing():
                self._patience.wait(chunk.id, self._clock())  # paused: nothing new is submitted

    async def _submit_again(self, chunk: ProviderBatch, batch: Batch, provider: BatchProvider) -> None:
        logger.info("a provider batch is submitted again: there is none", extra=_named(chunk))
        if claimed := await self._desk.books.claim(chunk, now=self._desk.now()):
            await self._sending.submit(claimed, batch, provider)

    async def _poll(self, chunk: ProviderBatch, batch: Batch, provider: BatchProvider) -> None:
        provider_id = chunk.provider_id or ""
        with tracing.alone("eval.batch_api.poll", provider_batch_id=provider_id) as span:
            seen = await provider.retrieve(provider_id)
            span.set_attribute("status", "ended" if seen.ended else "in_progress")
        now = self._desk.now()
        await self._desk.books.seen(chunk, seen.counts, now=now, ended=seen.ended)
        if seen.ended:
            telemetry.count_ended(_provider_of(chunk, batch), chunk, now)
            self._patience.reset(chunk.id)
            return
        if is_called_off(batch) and not chunk.called_off:  # one that has ended can't be cancelled
            await provider.cancel(provider_id)
            await self._desk.books.called_off(chunk)
        self._patience.wait(chunk.id, self._clock())

    async def _collect(self, chunk: ProviderBatch, batch: Batch, provider: BatchProvider) -> None:
        if await self._collecting.collect(chunk, batch, provider):
            state = ProviderBatchState.CANCELLED if is_called_off(batch) else ProviderBatchState.COLLECTED
            await self._desk.books.close(chunk, state, now=self._desk.now())
            if self._desk.reservations:
                self._desk.reservations.close(chunk)
            self._sending.expect(batch.batch_id)
            logger.info("a provider batch is done with", extra={**_named(chunk), "state": state.value})


def _named(chunk: ProviderBatch) -> dict[str, str]:
    return {"chunk": chunk.id, "batch_id": chunk.batch_id}


def _provider_of(chunk: ProviderBatch, batch: Batch) -> str:
    return spec_of(batch).targets[chunk.target].type
