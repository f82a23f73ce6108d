"""Taking tasks: an advisor, not a gatekeeper.

Work is asked for only when a slot is free for it, the event queue has room for what it will say, and
admission grants it. So no slot ever waits for a limit, and what can't be started now stays in the queue,
where any executor may find it.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from itertools import islice

from executor.ack_buffer import AckBuffer
from executor.admission import Admission, Admitted
from executor.claiming import Claiming
from executor.eligible_batches import EligibleBatches
from executor.failure_streak import FailureStreaks
from executor.lanes.contract import LanesUnavailable
from executor.outage import Outage, OutageBackoff
from executor.queue_selector import QueueSelector, in_queues
from executor.settings import Timings
from executor.slot_pool import SlotPool
from executor.stride_scheduler import StrideScheduler
from taskqueue.tasks import Delivery, QueueUnavailable, TaskQueue

FETCH_DIVISOR = 8
SMALLEST_FETCH = 16
"""Where the work takes its time, slots are filled in so many bites, or in bites of this size: what begins
together ends together, and all slots would stand empty while the next handful is fetched."""


class Scheduler:
    """Keeps the slots busy."""

    def __init__(  # noqa: PLR0913 - it weighs all of them against each other
        self,
        tasks: TaskQueue,
        claiming: Claiming,
        *,
        instance_id: str,
        hands: SlotPool,
        watch: EligibleBatches,
        acks: AckBuffer,
        admission: Admission,
        timings: Timings,
        outage: Outage,
        streaks: FailureStreaks,
    ) -> None:
        self._streaks = streaks
        self._tasks = tasks
        self._claiming = claiming
        self._instance_id = instance_id
        self._slot_pool = hands
        self._batches = watch
        self._acks = acks
        self._admission = admission
        self._timings = timings
        self._stride = StrideScheduler()
        self._queues = QueueSelector()
        self._backoff = OutageBackoff(outage, longest=1.0)
        self._stopping = False

    def stop(self) -> None:
        """Take no more."""
        self._stopping = True

    async def run(self) -> None:
        """Take tasks until told to stop; a request under way is waited for, for it may bring some."""
        clock = asyncio.get_running_loop().time
        every = self._timings.take_over_every.total_seconds()
        take_over_at = clock() + every
        while not self._stopping:
            if not self._may_take:
                await self._pause()
                continue
            try:
                if clock() < take_over_at:
                    await self._take(clock())
                else:
                    take_over_at = clock() + every
                    await self._take_over_all()
            except (QueueUnavailable, LanesUnavailable) as error:
                await self._backoff.wait(error)
            else:
                self._backoff.succeeded()

    @property
    def _may_take(self) -> bool:
        return self._slot_pool.free > 0 and self._claiming.has_room and bool(self._batches.priorities)

    async def _pause(self) -> None:
        """Wait for a free slot, and look now and then for what else may have changed."""
        try:
            async with asyncio.timeout(self._timings.poll.total_seconds()):
                await self._slot_pool.changed()
        except TimeoutError:
            return

    async def _take(self, now: float) -> None:
        """Ask for advice, then for tasks, and give back what was granted and not needed."""
        priorities, queues = self._batches.priorities, self._batches.queues
        await self._poll_idle_queues(now)
        chosen = self._queues.choose(queues, now)
        shut = (priorities.keys() - chosen) | self._held(now)
        size = self._fetch_size()
        plan = self._stride.plan(priorities, size, now=now, shut=shut)
        admitted = await self._admission.admit(list(islice(in_queues(plan.turns, chosen), size)))
        begun: Counter[str] = Counter()
        try:
            deliveries = await self._consume(admitted, now, may_wait=plan.may_wait)
            begun.update(self._begin(deliveries))
        finally:
            self._admission.give_back(Counter(admitted.granted) - begun)
        taken = Counter(each.queue for each in deliveries)
        self._queues.learn(admitted.granted, taken, shut=admitted.shut, metered=admitted.metered, now=now)
        dry = [batch for batch in priorities if self._queues.are_empty(queues[batch], now)]
        had = Counter(each.batch_id for each in deliveries)
        self._stride.took(plan, had, dry=dry, now=now)
        if not deliveries:
            await self._rest(admitted, now)

    def _held(self, now: float) -> set[str]:
        """Return the batches that failed so often in a row that the coordinator decides first."""
        self._streaks.forget_all_but(self._batches.priorities)
        return self._streaks.held(now)

    async def _poll_idle_queues(self, now: float) -> None:
        """Count what there is in queues that were empty: nobody is asked for a permit to find nothing."""
        if queues := self._queues.idle_queues(now):
            counts = await self._tasks.counts(queues)
            seen = {queue: each.ready for queue, each in zip(queues, counts, strict=True)}
            self._queues.saw(seen, now)

    def _fetch_size(self) -> int:
        """Say how much to take at a time: as much as there is room for, unless the work takes its time."""
        if self._slot_pool.is_quick:
            return self._slot_pool.free
        return min(self._slot_pool.free, max(SMALLEST_FETCH, self._slot_pool.slots // FETCH_DIVISOR))

    async def _consume(self, admitted: Admitted, now: float, *, may_wait: bool) -> list[Delivery]:
        """Take what is ready; wait for it only where nobody is kept waiting by that."""
        if not any(admitted.granted.values()):
            return []
        block = self._pause_at_most(now) if may_wait and not admitted.metered else 0.0
        return await self._tasks.consume(
            self._instance_id, admitted.granted, block=timedelta(seconds=block)
        )

    def _pause_at_most(self, now: float) -> float:
        """Say how long to wait for tasks: no longer than until a lane may let somebody in."""
        block, poll = self._timings.block.total_seconds(), self._timings.poll.total_seconds()
        asks_all = len(self._batches.priorities) <= self._slot_pool.free
        return min(block if asks_all else poll, self._queues.opens_in(now))

    async def _rest(self, admitted: Admitted, now: float) -> None:
        """Wait a moment where nobody has waited yet: permits are not held meanwhile."""
        if admitted.metered or not any(admitted.granted.values()):
            poll = self._timings.poll.total_seconds()
            await asyncio.sleep(min(poll, self._queues.opens_in(now)))

    async def _take_over_all(self) -> None:
        """Take what others have left lying, as far as it is admitted."""
        held = self._held(asyncio.get_running_loop().time())
        queues = [
            queue for batch, each in self._batches.queues.items() if batch not in held for queue in each
        ]
        admitted = await self._admission.admit((queues * self._slot_pool.free)[: self._fetch_size()])
        begun: Counter[str] = Counter()
        try:
            for queue, limit in admitted.granted.items():
                begun.update(self._begin(await self._take_over(queue, limit)))
        finally:
            self._admission.give_back(Counter(admitted.granted) - begun)

    async def _take_over(self, queue: str, limit: int) -> list[Delivery]:
        idle = self._timings.take_over_idle
        return await self._tasks.take_over(self._instance_id, [queue], idle=idle, limit=limit)

    def _begin(self, deliveries: Sequence[Delivery]) -> list[str]:
        """Start on what was taken, and name its queues; what comes while stopping goes back."""
        if self._stopping:
            for delivery in deliveries:
                self._acks.nack(delivery)
            return []
        return [hand.delivery.queue for hand in self._claiming.begin(deliveries, self._admission.lend)]
