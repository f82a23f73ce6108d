"""Operations on batches: pause, resume, cancel, retry. Each may be repeated, by any operator."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from coordinator.attempt_opening import spec_of
from coordinator.budget import BudgetChange, budget_words, more, overspent
from coordinator.coordinator import Coordinator
from coordinator.provider_batches.requests import unfit
from domain.batch_spec import BatchFallback, BatchSpec, pack
from eventlog import tracing
from eventlog.lifecycle import SETTLED
from projections.ledger.batch import Batch, Budget
from projections.ledger.contract import Ledger
from projections.ledger.provider_batches import ProviderBatchRepository
from taskqueue.tasks import QueueUnavailable

PAGE = 2_000
_WAYS_BACK = {
    "cancelled": ", which is final. Submit it again: scoreline batch run",
    "expired": ". To retry what did not complete: scoreline batch retry {}",
}


class OperationRejected(Exception):  # noqa: N818 - shown to the user
    """The operation is not possible; the message names the reason and an alternative."""


class BatchNotFound(OperationRejected):
    """There is no such batch."""

    def __init__(self, batch_id: str) -> None:
        super().__init__(f"There is no batch {batch_id!r}.")
        self.batch_id = batch_id


@dataclass(frozen=True, slots=True)
class MovedCounts:
    """The counts of a batch that is moved to provider batches."""

    batch: Batch
    """The batch before the move."""
    withdrawn: int = 0
    """Evaluations that were published to executors and not claimed."""

    @property
    def to_providers(self) -> int:
        """The number of evaluations that provider batches will answer."""
        return max(0, self.batch.progress.total - self.batch.published) + self.withdrawn

    @property
    def to_executors(self) -> bool:
        """Whether executors may still own evaluations of the batch."""
        return self.batch.in_flight > self.withdrawn


@dataclass(frozen=True, slots=True)
class Operator:
    """Runs operations in the name of an operator."""

    ledger: Ledger
    coordinator: Coordinator
    name: str = "operator"

    async def batch(self, batch_id: str) -> Batch:
        """Return a batch; raises `BatchNotFound`."""
        found = await self.ledger.batch(batch_id)
        if found is None:
            raise BatchNotFound(batch_id)
        return found

    async def pause_run(self, batch_id: str, run_id: str | None, *, reason: str) -> bool:
        """Pause a batch for the run that serves it; False if it is not running, or served by another."""
        paused = await self.ledger.request_state(
            batch_id, "paused", by=self.name, reason=reason, run_id=run_id
        )
        if paused:
            with suppress(QueueUnavailable):  # the ledger has it; the next cycle writes the batch registry
                await self._register(batch_id)
        return paused

    async def record_unrecorded(self, batch_id: str) -> None:
        """Record the estimated cost of aborted calls, once their executors have stopped."""
        await self.coordinator.record_unrecorded(await self.batch(batch_id))

    async def pause(self, batch_id: str, *, reason: str = "") -> None:
        """Pause a batch: active tasks finish, and no further task is consumed."""
        batch = await self.batch(batch_id)
        if batch.finished:
            raise OperationRejected(f"{batch_id} is {batch.state}: there is nothing to pause.")
        if batch.state == "paused":
            raise OperationRejected(
                f"{batch_id} is paused already. To continue: scoreline batch resume {batch_id}"
            )
        if not await self.ledger.request_state(batch_id, "paused", by=self.name, reason=reason):
            raise OperationRejected(f"{batch_id} is {batch.state}: there is nothing to pause.")
        await self._register(batch_id)

    async def resume(
        self, batch_id: str, *, budget: BudgetChange | None = None, run_id: str | None = None
    ) -> Batch:
        """Resume a batch that was paused, or whose run has ended, optionally with a new budget.

        With a run id, that run serves the batch from now on, and any other run stops serving it.
        """
        batch = await self.batch(batch_id)
        if batch.state in {"cancelled", "expired"}:
            raise OperationRejected(
                f"{batch_id} is {batch.state}{_WAYS_BACK[batch.state].format(batch_id)}"
            )
        if batch.finished:
            raise OperationRejected(
                f"{batch_id} is complete: there is nothing to resume. "
                f"To retry dead letters: scoreline batch retry {batch_id}"
            )
        await self._set_budget(batch, batch.budget._replace(**(budget or BudgetChange())))
        await self._assign(batch_id, run_id)
        await self.ledger.request_state(batch_id, "running", by=self.name)
        return await self._register(batch_id)

    async def _set_budget(self, batch: Batch, budget: Budget) -> None:
        """Store a new budget; a spent one is rejected while evaluations are left."""
        reason = overspent(budget)
        if reason and batch.progress.pending:
            again = " ".join(("scoreline batch resume", batch.batch_id, *more(budget)))
            raise OperationRejected(f"{batch.batch_id} can't continue: {reason}. To continue: {again}")
        if budget != batch.budget:
            await self.ledger.set_budget(batch.batch_id, budget, by=self.name, reason=budget_words(budget))

    async def cancel(self, batch_id: str, *, reason: str = "") -> None:
        """Cancel a batch: executors abort active tasks, the coordinator ends the rest."""
        batch = await self.batch(batch_id)
        if batch.finished:
            raise OperationRejected(f"{batch_id} is {batch.state}: there is nothing to cancel.")
        await self.coordinator.synchronize()
        await self.ledger.request_state(batch_id, "cancelled", by=self.name, reason=reason)
        await self.coordinator.process_batch(await self._register(batch_id))
        await self.coordinator.process_batch(await self.batch(batch_id))
        if self.coordinator.provider_batches:
            await self.coordinator.provider_batches.cancel_open(batch_id)

    async def ask_in_batches(self, batch_id: str, fallback: BatchFallback | None) -> MovedCounts:
        """Move the unclaimed evaluations of a batch to provider batches, or back to executors.

        The spec is stored first: after a crash in between, provider batches answer the withdrawn
        evaluations, and a repeated call withdraws the rest.
        """
        batch = await self.batch(batch_id)
        provider = self.coordinator.provider_batches
        if provider is None or batch.finished or batch.state in _WAYS_BACK:
            return MovedCounts(batch)
        await self.coordinator.synchronize()
        await self._change_spec(batch, replace(spec_of(batch), batch_api=fallback), provider.repository)
        withdrawn = await provider.canceller.withdraw(batch) if fallback else 0
        return MovedCounts(batch, withdrawn)

    async def _change_spec(
        self, batch: Batch, spec: BatchSpec, repository: ProviderBatchRepository
    ) -> None:
        batch_id, fallback = batch.batch_id, spec.batch_api
        if spec == spec_of(batch):
            return
        if fallback and (why := unfit(spec)):
            raise OperationRejected(f"{batch_id} can't use provider batches: {why}.")
        if fallback and await repository.has_groups(batch_id):
            raise OperationRejected(
                f"{batch_id} has serial groups: a provider batch can't answer evaluations in order."
            )
        reason = f"provider batches, {fallback}" if fallback else "no provider batches"
        await repository.update_spec(batch_id, pack(spec), by=self.name, reason=reason)

    async def retry(self, batch_id: str, *, only: Sequence[str] = (), run_id: str | None = None) -> int:
        """Retry dead letters, all or a selection, optionally by another run; returns how many."""
        with tracing.alone("eval.coordinator.retry_failed", batch_id=batch_id) as span:
            retried = await self._retry(batch_id, only, run_id)
            span.set_attribute("retry_count", retried)
            return retried

    async def _retry(self, batch_id: str, only: Sequence[str], run_id: str | None) -> int:
        batch = await self.batch(batch_id)
        if batch.state == "cancelled":
            raise OperationRejected(f"{batch_id} is cancelled{_WAYS_BACK['cancelled']}")
        pages = self._dead_letters(batch_id, only)
        page = await anext(pages, None)
        if page is None:
            return 0
        await self._assign(batch_id, run_id)
        if batch.finished or batch.state == "expired":
            await self.ledger.reopen(batch_id, by=self.name, reason="retry")
        batch = await self.batch(batch_id)
        reopened = await self.coordinator.reopen(batch, page)
        async for page in pages:
            reopened += await self.coordinator.reopen(batch, page)
        return reopened

    async def _dead_letters(self, batch_id: str, only: Sequence[str]) -> AsyncGenerator[list[str]]:
        if only:
            chosen = [one.row for one in await self.ledger.evaluation_states(only)]
            dead = [row for row in chosen if row.batch_id == batch_id and row.cursor.phase in SETTLED]
            for at in range(0, len(dead), PAGE):
                yield [row.evaluation_id for row in dead[at : at + PAGE]]
            return
        after = ""
        while page := await self.ledger.dead_ids(batch_id, after=after, limit=PAGE):
            yield page
            after = page[-1]

    async def _assign(self, batch_id: str, run_id: str | None) -> None:
        if run_id is not None:
            served_by = f"run {run_id}" if run_id else "the fleet"
            await self.ledger.assign_run(batch_id, run_id, by=self.name, reason=served_by)

    async def _register(self, batch_id: str) -> Batch:
        """Write the batch to the batch registry at once, before the next cycle does."""
        batch = await self.batch(batch_id)
        await self.coordinator.register([batch])
        return batch
