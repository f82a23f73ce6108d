"""Fetching tasks: as many as there are free slots, buffer for their events, and permits.

A task is fetched only when a slot is free for it, the event queue can buffer its events (backpressure), and
admission grants it. So no slot ever waits for a limit, and a task that can't be started now stays in the
queue, where any executor may fetch it.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import islice

from eventlog.outage import OutageBackoff
from executor.ack_buffer import AckBuffer
from executor.admission import Admission, Admitted
from executor.attempt import AttemptPipeline
from executor.eligible_batches import EligibleBatches
from executor.failure_streak import FailureStreaks
from executor.lanes.contract import LanesUnavailable
from executor.queue_selector import QueueSelector, in_queues
from executor.settings import Timings
from executor.slot_pool import SlotPool
from executor.stride_scheduler import StrideScheduler
from taskqueue.tasks import Delivery, QueueUnavailable, TaskQueue

FETCH_DIVISOR = 8
SMALLEST_FETCH = 16
"""Where evaluations are slow, slots are filled in so many fetches, or in fetches of this size: tasks that
start together end together, and all slots would be empty while the next fetch is under way."""


@dataclass(slots=True, kw_only=True, eq=False)
class Scheduler:
    """Keeps the slots busy."""

    tasks: TaskQueue
    pipeline: AttemptPipeline
    instance_id: str
    slot_pool: SlotPool
    batches: EligibleBatches
    acks: AckBuffer
    admission: Admission
    timings: Timings
    backoff: OutageBackoff
    streaks: FailureStreaks
    _stride: StrideScheduler = field(default_factory=StrideScheduler)
    _queues: QueueSelector = field(default_factory=QueueSelector)
    _is_stopping: bool = False

    def stop(self) -> None:
        """Fetch no more."""
        self._is_stopping = True

    async def run(self) -> None:
        """Fetch tasks until stopped; a request under way is awaited, for it may return some."""
        clock = asyncio.get_running_loop().time
        interval = self.timings.take_over_every.total_seconds()
        take_over_at = clock() + interval
        while not self._is_stopping:
            if not self._may_fetch:
                await self._pause()
                continue
            try:
                if clock() < take_over_at:
                    await self._fetch(clock())
                else:
                    take_over_at = clock() + interval
                    await self._take_over_all()
            except (QueueUnavailable, LanesUnavailable) as error:
                await self.backoff.wait(error)
            else:
                self.backoff.succeeded()

    @property
    def _may_fetch(self) -> bool:
        return self.slot_pool.free > 0 and self.pipeline.has_capacity and bool(self.batches.priorities)

    async def _pause(self) -> None:
        """Wait for a free slot, and poll for the other conditions."""
        try:
            async with asyncio.timeout(self.timings.poll.total_seconds()):
                await self.slot_pool.changed()
        except TimeoutError:
            return

    async def _fetch(self, now: float) -> None:
        """Choose batches and queues, acquire permits, fetch, and return unused permits."""
        priorities, queues = self.batches.priorities, self.batches.queues
        await self._poll_idle_queues(now)
        chosen = self._queues.choose(queues, now)
        closed = (priorities.keys() - chosen) | self._held(now)
        size = self._fetch_size()
        plan = self._stride.plan(priorities, size, now=now, closed=closed)
        admitted = await self.admission.admit(list(islice(in_queues(plan.turns, chosen), size)))
        started: Counter[str] = Counter()
        try:
            deliveries = await self._consume(admitted, now, may_wait=plan.may_wait)
            started.update(self._start(deliveries))
        finally:
            self.admission.return_unused(Counter(admitted.granted) - started)
        self._queues.learn(
            admitted.granted,
            Counter(each.queue for each in deliveries),
            retry_in=admitted.retry_in,
            metered=admitted.metered,
            now=now,
        )
        empty = [batch for batch in priorities if self._queues.are_empty(queues[batch], now)]
        fetched = Counter(each.batch_id for each in deliveries)
        self._stride.record(plan, fetched, empty=empty, now=now)
        if not deliveries:
            await self._pause_without_permits(admitted, now)

    def _held(self, now: float) -> set[str]:
        """Return the batches with so many consecutive failures that the coordinator decides first."""
        self.streaks.forget_all_but(self.batches.priorities)
        return self.streaks.held(now)

    async def _poll_idle_queues(self, now: float) -> None:
        """Count the tasks of idle queues: no permit is acquired only to find a queue empty."""
        if queues := self._queues.idle_queues(now):
            counts = await self.tasks.counts(queues)
            ready = {queue: each.ready for queue, each in zip(queues, counts, strict=True)}
            self._queues.polled(ready, now)

    def _fetch_size(self) -> int:
        """Return how many tasks to fetch: all free slots, or a part of them where evaluations are slow."""
        if self.slot_pool.is_quick:
            return self.slot_pool.free
        return min(self.slot_pool.free, max(SMALLEST_FETCH, self.slot_pool.slots // FETCH_DIVISOR))

    async def _consume(self, admitted: Admitted, now: float, *, may_wait: bool) -> list[Delivery]:
        """Fetch tasks that are ready; block for the first only where no other batch is kept waiting."""
        if not any(admitted.granted.values()):
            return []
        block = self._longest_block(now) if may_wait and not admitted.metered else 0.0
        return await self.tasks.consume(self.instance_id, admitted.granted, block=timedelta(seconds=block))

    def _longest_block(self, now: float) -> float:
        """Return how long to block for tasks: no longer than until the first closed queue may open."""
        block, poll = self.timings.block.total_seconds(), self.timings.poll.total_seconds()
        covers_all = len(self.batches.priorities) <= self.slot_pool.free
        return min(block if covers_all else poll, self._queues.opens_in(now))

    async def _pause_without_permits(self, admitted: Admitted, now: float) -> None:
        """Pause where `_consume` did not block: permits are not held meanwhile."""
        if admitted.metered or not any(admitted.granted.values()):
            await asyncio.sleep(min(self.timings.poll.total_seconds(), self._queues.opens_in(now)))

    async def _take_over_all(self) -> None:
        """Take over tasks whose consumer has not extended them, as far as admission grants them."""
        queues = await self._owned_queues()
        admitted = await self.admission.admit((queues * self.slot_pool.free)[: self._fetch_size()])
        started: Counter[str] = Counter()
        try:
            for queue, limit in admitted.granted.items():
                started.update(self._start(await self._claim_stalled(queue, limit)))
        finally:
            self.admission.return_unused(Counter(admitted.granted) - started)

    async def _owned_queues(self) -> list[str]:
        """Return the queues with tasks of any consumer: no permit is acquired for idle queues."""
        held = self._held(asyncio.get_running_loop().time())
        queues = [
            queue for batch, each in self.batches.queues.items() if batch not in held for queue in each
        ]
        counts = await self.tasks.counts(queues) if queues else []
        return [queue for queue, each in zip(queues, counts, strict=True) if each.owned]

    async def _claim_stalled(self, queue: str, limit: int) -> list[Delivery]:
        idle = self.timings.stalled_after
        return await self.tasks.claim_stalled(self.instance_id, [queue], idle=idle, limit=limit)

    def _start(self, deliveries: Sequence[Delivery]) -> list[str]:
        """Start attempts and return their queues; deliveries that arrive during shutdown are nacked."""
        if self._is_stopping:
            for delivery in deliveries:
                self.acks.nack(delivery)
            return []
        return [
            task.delivery.queue for task in self.pipeline.submit(deliveries, self.admission.take_permits)
        ]
