"""The batches that this executor may serve, refreshed from the batch registry."""

from collections.abc import Mapping, Sequence

from domain.eligibility import Eligibility
from executor.batch_runtime import RuntimeCache
from executor.slot_pool import InterruptReason, SlotPool
from taskqueue.batch_registry import BatchEntry, BatchRegistry, BatchState
from taskqueue.queue_layout import queue_name
from taskqueue.tasks import TaskQueue


class EligibleBatches:
    """The batch registry as of the last refresh."""

    def __init__(
        self,
        batch_registry: BatchRegistry,
        tasks: TaskQueue,
        *,
        slot_pool: SlotPool,
        runtimes: RuntimeCache,
        eligibility: Eligibility,
    ) -> None:
        self._batch_registry = batch_registry
        self._tasks = tasks
        self._slot_pool = slot_pool
        self._runtimes = runtimes
        self._eligibility = eligibility
        self.priorities: Mapping[str, int] = {}
        """The batches to fetch from, with their weights."""
        self.queues: Mapping[str, Sequence[str]] = {}
        """The queues of each of them, in the order in which they are served."""
        self.listed: frozenset[str] = frozenset()
        self._with_budget: frozenset[str] = frozenset()

    def has_budget(self, batch_id: str) -> bool:
        """Whether calls of a batch are reserved before they are made."""
        return batch_id in self._with_budget

    async def refresh(self) -> None:
        """Read the registry, interrupt tasks of stopped batches, and close runtimes no longer needed.

        A batch that is gone is not stopped: the registry may have been lost, and its work still counts.
        """
        entries = await self._batch_registry.list()
        eligible = [each for each in entries if self._is_eligible(each)]
        self.priorities = {each.batch_id: each.priority for each in eligible}
        self.queues = {
            each.batch_id: [queue_name(each.batch_id, partition) for partition in each.partitions]
            for each in eligible
        }
        self.listed = frozenset(each.batch_id for each in entries)
        self._with_budget = frozenset(each.batch_id for each in entries if each.has_budget)
        self._interrupt({each.batch_id for each in entries if each.state is BatchState.STOPPED})
        await self._runtimes.keep_only({each.batch_id for each in entries} | self._slot_pool.batches)

    def _is_eligible(self, entry: BatchEntry) -> bool:
        return entry.state is BatchState.RUNNING and self._eligibility.covers(
            run_id=entry.run_id, project=entry.project, requires=entry.requires
        )

    def _interrupt(self, stopped: set[str]) -> None:
        for task in self._slot_pool:
            if task.delivery.batch_id in stopped:
                task.interrupt(InterruptReason.BATCH_STOPPED)

    async def are_drained(self) -> bool:
        """Whether no eligible batch has a task, neither queued nor delivered to any executor."""
        queues = [queue for each in self.queues.values() for queue in each]
        if self._slot_pool or not queues:
            return not self._slot_pool
        return all(counts.is_drained for counts in await self._tasks.counts(queues))
