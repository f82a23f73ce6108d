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

from executor.admission import Admission, Admitted
from executor.claiming import Claiming
from executor.departures import Departures
from executor.failure_streak import FailureStreaks
from executor.fairness import Fairness
from executor.hands import Hands
from executor.lanes.contract import LanesUnavailable
from executor.openness import Openness, in_lines
from executor.outage import Outage, Patience
from executor.settings import Rhythm
from executor.watch import Watch
from taskqueue.tasks import Delivery, QueueUnavailable, TaskQueue

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
        instance_id: str,
        hands: Hands,
        watch: Watch,
        departures: Departures,
        admission: Admission,
        rhythm: Rhythm,
        outage: Outage,
        streaks: FailureStreaks,
    ) -> None:
        self._streaks = streaks
        self._tasks = tasks
        self._claiming = claiming
        self._instance_id = instance_id
        self._hands = hands
        self._watch = watch
        self._departures = departures
        self._admission = admission
        self._rhythm = rhythm
        self._fairness = Fairness()
        self._openness = Openness()
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
                    await self._take(clock())
                else:
                    take_over_at = clock() + every
                    await self._take_over_all()
            except (QueueUnavailable, LanesUnavailable) as error:
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

    async def _take(self, now: float) -> None:
        """Ask for advice, then for tasks, and give back what was granted and not needed."""
        priorities, lines = self._watch.priorities, self._watch.lines
        await self._look_at_sleepers(now)
        chosen = self._openness.choose(lines, now)
        shut = (priorities.keys() - chosen) | self._held(now)
        bite = self._bite()
        plan = self._fairness.plan(priorities, bite, now=now, shut=shut)
        admitted = await self._admission.admit(list(islice(in_lines(plan.turns, chosen), bite)))
        begun: Counter[str] = Counter()
        try:
            deliveries = await self._consume(admitted, now, may_wait=plan.may_wait)
            begun.update(self._begin(deliveries))
        finally:
            self._admission.give_back(Counter(admitted.granted) - begun)
        taken = Counter(each.line for each in deliveries)
        self._openness.learn(admitted.granted, taken, shut=admitted.shut, metered=admitted.metered, now=now)
        dry = [batch for batch in priorities if self._openness.are_empty(lines[batch], now)]
        had = Counter(each.batch_id for each in deliveries)
        self._fairness.took(plan, had, dry=dry, now=now)
        if not deliveries:
            await self._rest(admitted, now)

    def _held(self, now: float) -> set[str]:
        """Return the batches that failed so often in a row that the coordinator decides first."""
        self._streaks.forget_all_but(self._watch.priorities)
        return self._streaks.held(now)

    async def _look_at_sleepers(self, now: float) -> None:
        """Count what there is in lines that were empty: nobody is asked for a permit to find nothing."""
        if lines := self._openness.sleepers(now):
            counts = await self._tasks.counts(lines)
            seen = {line: each.ready for line, each in zip(lines, counts, strict=True)}
            self._openness.saw(seen, now)

    def _bite(self) -> int:
        """Say how much to take at a time: as much as there is room for, unless the work takes its time."""
        if self._hands.is_quick:
            return self._hands.free
        return min(self._hands.free, max(SMALLEST_BITE, self._hands.slots // BITES))

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
        block, glance = self._rhythm.block.total_seconds(), self._rhythm.glance.total_seconds()
        asks_all = len(self._watch.priorities) <= self._hands.free
        return min(block if asks_all else glance, self._openness.opens_in(now))

    async def _rest(self, admitted: Admitted, now: float) -> None:
        """Wait a moment where nobody has waited yet: permits are not held meanwhile."""
        if admitted.metered or not any(admitted.granted.values()):
            glance = self._rhythm.glance.total_seconds()
            await asyncio.sleep(min(glance, self._openness.opens_in(now)))

    async def _take_over_all(self) -> None:
        """Take what others have left lying, as far as it is admitted."""
        held = self._held(asyncio.get_running_loop().time())
        lines = [line for batch, each in self._watch.lines.items() if batch not in held for line in each]
        admitted = await self._admission.admit((lines * self._hands.free)[: self._bite()])
        begun: Counter[str] = Counter()
        try:
            for line, limit in admitted.granted.items():
                begun.update(self._begin(await self._take_over(line, limit)))
        finally:
            self._admission.give_back(Counter(admitted.granted) - begun)

    async def _take_over(self, line: str, limit: int) -> list[Delivery]:
        idle = self._rhythm.take_over_idle
        return await self._tasks.take_over(self._instance_id, [line], idle=idle, limit=limit)

    def _begin(self, deliveries: Sequence[Delivery]) -> list[str]:
        """Start on what was taken, and name its lines; what comes while stopping goes back."""
        if self._stopping:
            for delivery in deliveries:
                self._departures.give_back(delivery)
            return []
        return [hand.delivery.line for hand in self._claiming.begin(deliveries, self._admission.lend)]
