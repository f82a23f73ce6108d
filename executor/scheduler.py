"""Taking tasks: an advisor, not a gatekeeper.

Work is asked for only when a slot is free for it, the event queue has room for what it will say, and
admission grants it. So no slot ever waits for a limit, and what can't be started now stays in the queue,
where any executor may find it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import timedelta

from executor.admission import Admission
from executor.claiming import Claiming
from executor.departures import Departures
from executor.fairness import Fairness, Plan
from executor.hands import Hands
from executor.outage import Outage, Patience
from executor.settings import Rhythm
from executor.watch import Watch
from taskqueue.tasks import Delivery, QueueUnavailable, TaskQueue

Granted = Mapping[str, int]
Fetch = Callable[[Plan, Granted, Callable[[], float]], Awaitable[list[Delivery]]]


BITES = 8
SMALLEST_BITE = 16
"""Where the work takes its time, slots are filled in so many bites, or in bites of this size: what begins
together ends together, and all slots would stand empty while the next handful is fetched."""


class Scheduler:
    """Keeps the slots busy."""

    def __init__(  # noqa: PLR0913 - it weighs all of them against each other
        self,
        tasks: TaskQueue,
        claiming: Claiming,
        *,
        incarnation: str,
        hands: Hands,
        watch: Watch,
        departures: Departures,
        admission: Admission,
        rhythm: Rhythm,
        outage: Outage,
    ) -> None:
        self._tasks = tasks
        self._claiming = claiming
        self._incarnation = incarnation
        self._hands = hands
        self._watch = watch
        self._departures = departures
        self._admission = admission
        self._rhythm = rhythm
        self._fairness = Fairness()
        self._patience = Patience(outage, longest=1.0)
        self._stopping = False

    def stop(self) -> None:
        """Take no more."""
        self._stopping = True

    async def run(self) -> None:
        """Take tasks until told to stop; a request under way is waited for, for it may bring some."""
        clock = asyncio.get_running_loop().time
        every = self._rhythm.take_over_every.total_seconds()
        take_over_at = clock() + every
        while not self._stopping:
            if not self._may_take:
                await self._pause()
                continue
            try:
                if clock() < take_over_at:
                    await self._take(self._consume, clock)
                else:
                    take_over_at = clock() + every
                    await self._take(self._take_over, clock)
            except QueueUnavailable as error:
                await self._patience.wait(error)
            else:
                self._patience.rewarded()

    @property
    def _may_take(self) -> bool:
        return self._hands.free > 0 and self._claiming.has_room and bool(self._watch.priorities)

    async def _pause(self) -> None:
        """Wait for a free slot, and look now and then for what else may have changed."""
        try:
            async with asyncio.timeout(self._rhythm.glance.total_seconds()):
                await self._hands.changed()
        except TimeoutError:
            return

    async def _take(self, fetch: Fetch, clock: Callable[[], float]) -> None:
        """Ask for advice, then for tasks, and give back what was granted and not needed."""
        plan = self._fairness.plan(self._watch.priorities, self._bite(), now=clock())
        granted = await self._admission.admit(plan.wanted)
        taken: Counter[str] = Counter()
        try:
            deliveries = await fetch(plan, granted, clock)
            taken.update(delivery.batch_id for delivery in deliveries)
            self._begin(deliveries)
        finally:
            left = {batch: number - taken[batch] for batch, number in granted.items()}
            if unused := {batch: number for batch, number in left.items() if number > 0}:
                await self._admission.give_back(unused)

    def _bite(self) -> int:
        """Say how much to take at a time: as much as there is room for, unless the work takes its time."""
        if self._hands.is_quick:
            return self._hands.free
        return min(self._hands.free, max(SMALLEST_BITE, self._hands.slots // BITES))

    async def _consume(self, plan: Plan, granted: Granted, clock: Callable[[], float]) -> list[Delivery]:
        """Take what is ready; wait for it only where nobody is kept waiting by that."""
        priorities, deliveries = self._watch.priorities, list[Delivery]()
        patient = self._rhythm.block if len(granted) == len(priorities) else self._rhythm.glance
        if any(granted.values()):
            block = patient if plan.may_wait else timedelta(0)
            deliveries = await self._tasks.consume(self._incarnation, granted, block=block)
        else:
            await asyncio.sleep(self._rhythm.glance.total_seconds())
        self._fairness.took(plan, Counter(each.batch_id for each in deliveries), now=clock())
        return deliveries

    async def _take_over(self, _plan: Plan, granted: Granted, _clock: object) -> list[Delivery]:
        """Take what others have left lying."""
        idle, limit = self._rhythm.take_over_idle, sum(granted.values())
        return await self._tasks.take_over(self._incarnation, list(granted), idle=idle, limit=limit)

    def _begin(self, deliveries: Sequence[Delivery]) -> None:
        """Start on what was taken; what comes while stopping goes back."""
        if self._stopping:
            for delivery in deliveries:
                self._departures.give_back(delivery)
        else:
            self._claiming.begin(deliveries)
