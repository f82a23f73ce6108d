"""The reconciliation loop: reads rows, streams and live executors, decides per evaluation, and acts."""

import logging
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta

from coordinator import decisions
from coordinator.attempt_opening import AttemptOpener, layout_of, spec_of
from coordinator.epochs import EpochTracker
from coordinator.provider_batches.requests import uses_provider_batch_in
from coordinator.publisher import Publisher
from coordinator.reconcile_decision import ReconcileAction, reconcile
from coordinator.settings import CoordinatorSettings
from coordinator.stream_inspection import inspect_stream
from eventlog import payloads as p
from eventlog import tracing
from eventlog.log import EventLog
from projections.ledger.batch import Batch
from projections.ledger.contract import EvaluationState, Ledger
from taskqueue.executor_registry import ExecutorRegistry
from taskqueue.tasks import Task, TaskQueue

logger = logging.getLogger(__name__)

STREAM_LIMIT = 1_000
FIRST_PAGE = 100
"""Evaluations of the first page after an epoch change; each further page has twice as many.

Idle executors start on the first page while further attempts are opened."""
REASONS = {ReconcileAction.RETRY: p.OpeningReason.RETRY, ReconcileAction.LOST: p.OpeningReason.LOST}


class Reconciler:
    """Reconciles evaluations without progress, which may have lost their owner or their task."""

    def __init__(  # noqa: PLR0913 - four ports and three collaborators
        self,
        log: EventLog,
        ledger: Ledger,
        queue: TaskQueue,
        executor_registry: ExecutorRegistry,
        *,
        publisher: Publisher,
        attempt_opener: AttemptOpener,
        epochs: EpochTracker,
        settings: CoordinatorSettings,
        clock: Callable[[], float],
    ) -> None:
        self._log = log
        self._ledger = ledger
        self._queue = queue
        self._executor_registry = executor_registry
        self._publisher = publisher
        self._attempt_opener = attempt_opener
        self._epochs = epochs
        self._settings = settings
        self._clock = clock
        self._reconciled_at: dict[str, float] = {}
        self._reconciled_epochs: dict[str, list[str]] = {}
        """The epochs for which everything a batch had in flight has been reconciled."""

    async def reconcile_when_due(self, batch: Batch) -> None:
        """Reconcile every evaluation of a batch without recent progress, every few seconds."""
        now, interval = self._clock(), self._settings.reconcile_interval.total_seconds()
        if now - self._reconciled_at.get(batch.batch_id, -interval) >= interval or self._grace_is_over(
            batch
        ):
            self._reconciled_at[batch.batch_id] = now
            left = batch.progress.pending
            about = {"pending": left, "completed": batch.progress.completed}
            with tracing.alone("eval.coordinator.monitor", batch_id=batch.batch_id, **about):
                await self._reconcile_all(batch)

    def _grace_is_over(self, batch: Batch) -> bool:
        """Whether a batch waited for a grace period that has just ended."""
        reconciled = self._reconciled_epochs.get(batch.batch_id)
        return self._epochs.all_settled and reconciled != self._epochs.current

    def retain(self, batch_ids: Collection[str]) -> None:
        """Drop the state of finished batches."""
        for memory in (self._reconciled_at, self._reconciled_epochs):
            for gone in memory.keys() - batch_ids:
                memory.pop(gone, None)

    async def _reconcile_all(self, batch: Batch) -> None:
        all_counts = await self._queue.counts(layout_of(batch).queues)
        is_drained = all(counts.is_drained for counts in all_counts)
        epochs, settled = await self._epochs.refresh(), self._epochs.all_settled
        is_reconciled = self._reconciled_epochs.get(batch.batch_id) == epochs
        live = [one.instance_id for one in await self._executor_registry.live()]
        after, page_size = "", self._settings.page_size
        limit = page_size if is_reconciled else min(FIRST_PAGE, page_size)
        while page := await self._ledger.unmoved(
            batch,
            after=after,
            # The first pass after a grace period covers everything: an epoch change is no progress.
            unchanged_for=timedelta(0) if settled and not is_reconciled else self._settings.unchanged_for,
            # A sweep may apply a claim long after its append: the age of the claim itself decides.
            hung_after=self._allowed(batch) - self._settings.hung_grace,
            live=live,
            # A queued task will be consumed, unless Redis has lost its stream.
            queued=is_drained or not is_reconciled,
            limit=limit,
        ):
            await self.reconcile_evaluations(batch, page, is_drained=is_drained)
            after, limit = page[-1].row.evaluation_id, min(2 * limit, page_size)
        if settled:
            self._reconciled_epochs[batch.batch_id] = epochs

    def _allowed(self, batch: Batch) -> timedelta:
        """Return how long an attempt may take before its executor counts as hung."""
        return spec_of(batch).attempt_deadline + self._settings.hung_grace

    async def reconcile_evaluations(
        self, batch: Batch, evaluation_states: Sequence[EvaluationState], *, is_drained: bool = False
    ) -> None:
        """Decide and execute the action for each of these evaluations."""
        if evaluation_states:
            await self._act(batch, await self._decide(batch, evaluation_states, is_drained=is_drained))

    async def _decide(
        self, batch: Batch, evaluation_states: Sequence[EvaluationState], *, is_drained: bool
    ) -> dict[ReconcileAction, list[EvaluationState]]:
        # Read before the streams: they then hold everything that executors have confirmed.
        settled = {
            key for one in evaluation_states if self._epochs.is_settled(key := one.row.evaluation_id)
        }
        streams = await self._log.read(
            [one.row.evaluation_id for one in evaluation_states], limit=STREAM_LIMIT
        )
        inspections = [
            inspect_stream(state, stream, epoch=self._epochs.of(state.row.evaluation_id))
            for state, stream in zip(evaluation_states, streams, strict=True)
        ]
        live = await self._executor_registry.filter_live(
            {one.claimed_by for one in inspections if one.claimed_by}
        )
        now_ms, allowed = await self._log.now_ms(), self._allowed(batch)
        decided: dict[ReconcileAction, list[EvaluationState]] = {}
        for one in inspections:
            is_settled = one.state.row.evaluation_id in settled
            view = one.view(
                live, now_ms=now_ms, allowed=allowed, is_settled=is_settled, is_drained=is_drained
            )
            decided.setdefault(reconcile(view), []).append(one.state)
        return decided

    async def _act(self, batch: Batch, decided: dict[ReconcileAction, list[EvaluationState]]) -> None:
        for what, evaluation_states in decided.items():
            if what is ReconcileAction.WAIT:
                continue
            fields = {"batch_id": batch.batch_id, "next": what, "count": len(evaluation_states)}
            logger.info("reconciling evaluations", extra=fields)
            match what:
                case ReconcileAction.PUBLISH:
                    await self._publish(batch, evaluation_states)
                case ReconcileAction.ENQUEUE:
                    await self._enqueue(batch, evaluation_states)
                case ReconcileAction.RETRY | ReconcileAction.LOST:
                    await self._try_again(batch, evaluation_states, REASONS[what])

    async def _publish(self, batch: Batch, evaluation_states: Sequence[EvaluationState]) -> None:
        epochs = {one.row.evaluation_id: one.epoch for one in evaluation_states}
        openings = await self._ledger.openings(list(epochs))
        in_epochs = ((one.events, epochs[one.evaluation_id]) for one in openings)
        await self._publisher.publish(layout_of(batch), in_epochs)

    async def _enqueue(self, batch: Batch, evaluation_states: Sequence[EvaluationState]) -> None:
        layout = layout_of(batch)
        if layout.is_metered:
            openings = await self._ledger.openings([one.row.evaluation_id for one in evaluation_states])
            await self._publisher.enqueue(layout, [one.events[0][0] for one in openings])
        else:
            tasks = [Task(one.row.evaluation_id, one.row.cursor.attempt) for one in evaluation_states]
            await self._queue.enqueue_batch(batch.batch_id, tasks)

    async def _try_again(
        self, batch: Batch, evaluation_states: Sequence[EvaluationState], reason: p.OpeningReason
    ) -> None:
        expected = {one.row.evaluation_id: one.row.cursor.attempt for one in evaluation_states}
        spec = spec_of(batch)
        decide = decisions.try_again(
            self._attempt_opener.factory,
            expected,
            reason=reason,
            retries=spec.retries,
            uses_provider_batch=uses_provider_batch_in(spec),
        )
        await self._attempt_opener.open(batch, list(expected), decide)
