"""The control plane: a control loop that brings every batch one step further in each cycle.

All durable state is in the ledger, and every step is an idempotent compare-and-set, so any number of
coordinators may start, crash and overlap: an incomplete step is repeated, and a step that another
coordinator has completed changes nothing.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from random import random
from secrets import token_hex
from time import monotonic

from pydantic import ValidationError

from coordinator import decisions, telemetry
from coordinator.attempt_opening import AttemptOpener, layout_of, spec_of
from coordinator.auto_pause import AutoPause
from coordinator.budget_keeper import BudgetKeeper
from coordinator.epochs import EpochTracker
from coordinator.groups import contexts
from coordinator.provider_batches.canceller import TaskCanceller
from coordinator.provider_batches.context import ProviderBatchContext, ProviderPorts
from coordinator.provider_batches.driver import ProviderBatchDriver
from coordinator.provider_batches.requests import uses_provider_batch_in
from coordinator.provider_batches.reservations import BatchReservations
from coordinator.publisher import Publisher
from coordinator.reconciler import Reconciler
from coordinator.settings import CoordinatorSettings
from eventlog import payloads as p
from eventlog.clock import ServerClock
from eventlog.keys import shard_of
from eventlog.log import EventLog, LogUnavailable
from projections.database.errors import DatabaseUnavailable
from projections.ledger.batch import Batch
from projections.ledger.contract import Ledger, UnpublishedOpening
from taskqueue.batch_registry import BatchEntry, BatchRegistry, BatchState
from taskqueue.budget.contract import BudgetAccounts
from taskqueue.executor_registry import ExecutorRegistry
from taskqueue.queue_layout import DEFAULT_PARTITION
from taskqueue.tasks import QueueUnavailable, TaskQueue

logger = logging.getLogger(__name__)

AWAY = (LogUnavailable, DatabaseUnavailable, QueueUnavailable)
"""Errors that a retry resolves."""
STATES = {"running": BatchState.RUNNING, "paused": BatchState.PAUSED}


@dataclass(frozen=True, slots=True)
class CoordinatorPorts:
    """The stores that a coordinator reads and writes."""

    log: EventLog
    ledger: Ledger
    queue: TaskQueue
    batch_registry: BatchRegistry
    executor_registry: ExecutorRegistry
    budgets: BudgetAccounts | None = None
    """Accounts of reserved spend; without them a budget is compared with recorded spend only."""
    provider: ProviderPorts | None = None
    """Provider batch APIs, where there are any."""


class Coordinator:
    """Runs the cycles of all batches; only coordinators open attempts."""

    def __init__(
        self,
        ports: CoordinatorPorts,
        *,
        settings: CoordinatorSettings | None = None,
        now: Callable[[], datetime] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.settings = settings = settings or CoordinatorSettings()
        self._ledger, self._queue, self._batch_registry = ports.ledger, ports.queue, ports.batch_registry
        self._server_clock = ServerClock(clock)
        self._now = now or self._server_clock.now
        self._clock = clock
        self._stopped: dict[str, float] = {}
        """Stopped and finished batches, and when this coordinator first saw each."""
        self._shards = ports.log.shards
        self._processed: set[str] = set()
        """Batches of the last cycle: the next one counts those that have finished since."""
        self._epochs = EpochTracker(ports.log, ports.executor_registry, grace=settings.grace, clock=clock)
        self._publisher = Publisher(ports.log, ports.queue)
        self._keeper = self._budget_keeper(ports)
        self._auto_pause = AutoPause(ports.ledger, self._keeper, clock=clock)
        self._attempt_opener = AttemptOpener(
            *(ports.ledger, ports.batch_registry, self._publisher, self._epochs),
            settings=settings,
            now=self._now,
        )
        self._reconciler = self._make_reconciler(ports)
        self.provider_batches = self._provider_batch_driver(ports)
        """Runs in cycles of its own, so that a slow provider delays no batch."""

    def _budget_keeper(self, ports: CoordinatorPorts) -> BudgetKeeper | None:
        if ports.budgets is None:
            return None
        return BudgetKeeper(
            *(ports.ledger, ports.budgets, ports.executor_registry),
            is_settled=lambda: self._epochs.all_settled,
            clock=self._clock,
        )

    def _make_reconciler(self, ports: CoordinatorPorts) -> Reconciler:
        return Reconciler(
            *(ports.log, ports.ledger, ports.queue, ports.executor_registry),
            publisher=self._publisher,
            attempt_opener=self._attempt_opener,
            epochs=self._epochs,
            settings=self.settings,
            clock=self._clock,
        )

    def _provider_batch_driver(self, ports: CoordinatorPorts) -> ProviderBatchDriver | None:
        if ports.provider is None:
            return None
        settings, budgets = self.settings, ports.budgets
        context = ProviderBatchContext(
            *(ports.ledger, ports.provider, self._attempt_opener, self._epochs),
            *(settings.provider, settings.window),
            run_id=settings.run_id,
            least_room=min(settings.page_size, settings.window),
            now=self._now,
            new_id=lambda: token_hex(8),
            reservations=BatchReservations(budgets, clock=self._clock) if budgets else None,
        )
        canceller = TaskCanceller(ports.log, ports.queue, source=settings.name, now=self._now)
        return ProviderBatchDriver(context, self._publisher, canceller, clock=self._clock, jitter=random)

    async def synchronize(self) -> None:
        """Synchronize with the clock of the ledger's server, on which stored times are compared."""
        self._server_clock.synchronize(await self._ledger.now())

    async def run_cycle(self) -> int:
        """Process every unfinished batch once; returns how many there are."""
        begun = self._clock()
        left = await self._run_cycle()
        telemetry.CYCLE.record((self._clock() - begun) * 1000)
        return left

    async def _run_cycle(self) -> int:
        await self.synchronize()
        await self._epochs.refresh()
        batches = await self._ledger.unfinished(self.settings.run_id)
        open_ids = {batch.batch_id for batch in batches}
        await self._clear_up(
            await self._without_other_runs((await self.register(batches) | self._processed) - open_ids)
        )
        self._processed = open_ids
        for batch in batches:
            try:
                await self.process_batch(batch)
            except AWAY:
                raise
            except Exception:  # an invalid batch must not block the others
                logger.exception("processing a batch failed", extra={"batch_id": batch.batch_id})
        await self._attempt_opener.publish_endings()
        self._reconciler.retain(open_ids)
        self._auto_pause.retain({batch.batch_id for batch in batches if batch.state == "running"})
        return len(batches)

    async def process_batch(self, batch: Batch) -> None:
        """Process one batch: publish, retry, reconcile, expire or finish it, by its state."""
        match batch.state:
            case "cancelled":
                await self._attempt_opener.end_all(batch, p.Cancelled(by="operator", reason=batch.reason))
            case "expired":
                await self._attempt_opener.end_all(
                    batch, p.TimedOut(limit="batch", seconds=batch.allowed_seconds)
                )
            case "running" | "paused" if batch.deadline and batch.deadline <= self._now():
                await self._expire(batch)
            case "running":
                await self._drive(batch)
            case "paused":  # active tasks finish by themselves
                await self.record_unrecorded(batch)
            case _:
                pass
        if not batch.progress.pending:
            await self._finish(batch)

    async def record_unrecorded(self, batch: Batch) -> None:
        """Record spend of a paused batch that no event records: calls that its executors aborted."""
        if self._keeper:
            await self._keeper.record_unrecorded(batch)

    async def _drive(self, batch: Batch) -> None:
        if reason := await self._auto_pause.reason_to_pause(batch):
            await self._pause(batch, reason)
            return
        await self._publish_windows(batch)
        await self._advance_groups(batch)
        retries = await self._ledger.due_retries(batch, now=self._now(), limit=self.settings.page_size)
        await self._reconciler.reconcile_evaluations(batch, retries)
        await self._reconciler.reconcile_when_due(batch)

    async def _pause(self, batch: Batch, reason: str) -> None:
        """Pause a batch until an operator resumes it."""
        if await self._ledger.request_state(batch.batch_id, "paused", by="coordinator", reason=reason):
            logger.warning("batch paused", extra={"batch_id": batch.batch_id, "reason": reason})
            await self.register([replace(batch, state="paused")])
        self._auto_pause.release(batch.batch_id)

    async def _expire(self, batch: Batch) -> None:
        logger.warning("batch expired: its time limit is reached", extra={"batch_id": batch.batch_id})
        await self._ledger.request_state(batch.batch_id, "expired", by="coordinator", reason="out of time")

    async def _finish(self, batch: Batch) -> None:
        if await self._ledger.finish(batch.batch_id):
            if is_stopped(batch):  # its entry stays until every executor has polled it
                await self._queue.delete(batch.batch_id, partitions_of(batch))
            else:
                await self._unregister(batch)
            logger.info("batch finished", extra={"batch_id": batch.batch_id, "total": batch.progress.total})

    # -- the batch registry

    async def register(self, batches: Sequence[Batch]) -> set[str]:
        """Write the ledger's batches to the batch registry: Redis may have lost them, or never had them.

        Returns the batches that were registered before.
        """
        registered = {entry.batch_id: entry for entry in await self._batch_registry.list()}
        for batch in batches:
            entry = entry_of(batch)
            if batch.batch_id not in registered and not batch.published_to:
                telemetry.count_started(batch)
            if registered.get(batch.batch_id) != entry:
                if self._keeper and batch.state == "running":  # before executors serve it
                    await self._keeper.publish(batch)
                await self._batch_registry.upsert(entry, batch.spec)
        return set(registered)

    async def _without_other_runs(self, batch_ids: set[str]) -> set[str]:
        """Exclude batches that another run serves: the coordinator of that run processes them."""
        if not batch_ids:
            return batch_ids
        return batch_ids - await self._ledger.owned_by_other_runs(sorted(batch_ids), self.settings.run_id)

    async def _clear_up(self, batch_ids: Iterable[str]) -> None:
        """Unregister finished batches: a coordinator may have crashed first, or registered one again."""
        for batch_id in sorted(batch_ids):
            batch = await self._ledger.batch(batch_id)
            if batch and batch.finished:
                if self._was_seen(batch):
                    await self._unregister(batch)
                if batch_id in self._processed:
                    self._processed.discard(batch_id)  # counted once, even if a later batch fails
                    telemetry.count_over(batch, self._now())

    def _was_seen(self, batch: Batch) -> bool:
        """Whether every executor has had time to poll that a batch was stopped, and to abort its tasks."""
        since, delay = (
            self._stopped.setdefault(batch.batch_id, self._clock()),
            self.settings.unregister_delay,
        )
        return not is_stopped(batch) or self._clock() - since >= delay.total_seconds()

    async def _unregister(self, batch: Batch) -> None:
        # The entry goes last: while it exists, the next cycle finds a batch to unregister.
        await self._queue.delete(batch.batch_id, partitions_of(batch))
        if self._keeper:
            await self._keeper.close(batch.batch_id)
        await self._batch_registry.unregister(batch.batch_id)
        self._stopped.pop(batch.batch_id, None)

    async def _publish_windows(self, batch: Batch) -> None:
        """Publish further evaluations while the window has room."""
        settings = self.settings
        room = settings.window - batch.in_flight
        if room < min(settings.page_size, settings.window) and batch.in_flight > 0:
            return
        uses_provider_batch = uses_provider_batch_in(spec_of(batch))
        steps = -(-settings.window // settings.page_size)  # pages for a provider take no room
        while room > 0 and (steps := steps - 1) >= 0:
            openings, last_id = await self._ledger.next_window(batch, limit=min(room, settings.page_size))
            if last_id == batch.published_to:
                return
            # An opening without events waits for its serial group.
            due = [one for one in openings if one.events]
            by_provider = {one.evaluation_id for one in due if uses_provider_batch(one.events[0][0].data)}
            epochs, size = await self._epochs.refresh(), len(openings) - len(by_provider)
            if not await self._ledger.open_window(
                batch, last_id=last_id, size=size, epochs=epochs, by_provider=sorted(by_provider)
            ):
                return
            published = (one for one in due if one.evaluation_id not in by_provider)
            await self._publish(batch, published, epochs)
            batch = replace(batch, published_to=last_id)
            room -= size

    async def _publish(
        self, batch: Batch, openings: Iterable[UnpublishedOpening], epochs: Sequence[str]
    ) -> None:
        in_epochs = ((one.events, epochs[shard_of(one.evaluation_id, self._shards)]) for one in openings)
        await self._publisher.publish(layout_of(batch), in_epochs)

    async def _advance_groups(self, batch: Batch) -> None:
        """Publish the evaluations of serial groups whose predecessors have ended."""
        waiting = await self._ledger.due_links(batch.batch_id, limit=self.settings.page_size)
        if not waiting:
            return
        links = {one.evaluation_id: one.link for one in waiting}
        left = await contexts(self._ledger, spec_of(batch), links)
        ready = {key: context.packed() for key, context in left.items() if context.missing is None}
        blocked = {key: context.missing for key, context in left.items() if context.missing}
        await self._batch_registry.put_contexts(batch.batch_id, ready)
        epochs = await self._epochs.refresh()
        await self._publish(batch, await self._ledger.release(list(ready), epochs), epochs)
        give_up = decisions.give_up(self._attempt_opener.factory, blocked)
        await self._attempt_opener.open(batch, sorted(blocked), give_up)

    # -- operations

    async def reopen(self, batch: Batch, evaluation_ids: Sequence[str]) -> int:
        """Reopen settled evaluations for an operator; returns how many."""
        await self.synchronize()
        await self._epochs.refresh()
        await self.register([batch])
        waiting = await self._ledger.links(evaluation_ids)
        spec = spec_of(batch)
        decide = decisions.reopen(
            self._attempt_opener.factory,
            retries=spec.retries,
            waiting=waiting.keys(),
            uses_provider_batch=uses_provider_batch_in(spec),
        )
        return await self._attempt_opener.open(batch, evaluation_ids, decide)


def is_stopped(batch: Batch) -> bool:
    """Whether a batch is cancelled or expired, so that executors abort it."""
    return batch.state in {"cancelled", "expired"}


def entry_of(batch: Batch) -> BatchEntry:
    """Return the entry of a batch for the batch registry."""
    state = STATES.get(batch.state, BatchState.STOPPED)
    return BatchEntry(
        batch.batch_id,
        state,
        batch.priority,
        batch.project,
        partitions_of(batch),
        has_budget=batch.budget.is_limited,
        requires=requires_of(batch),
        run_id=batch.run_id,
    )


def requires_of(batch: Batch) -> tuple[str, ...]:
    """Return the labels that a batch requires; none if its spec is invalid."""
    try:
        return spec_of(batch).requires
    except ValidationError:
        return ()


def partitions_of(batch: Batch) -> tuple[str, ...]:
    """Return the partitions of a batch; the default one if its spec is invalid."""
    try:
        return layout_of(batch).partitions
    except ValidationError:
        return (DEFAULT_PARTITION,)
