"""Admission control: a task that is not granted stays in the queue and occupies no slot."""

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence

from executor.admission import Admitted
from executor.lanes.permits import NO_PERMITS, Permits
from taskqueue.tasks import QueueCounts
from tests.unit.executor.harness import Harness, virtually
from tests.waiting import until


class Budget:
    """Grants a fixed number of evaluations of each batch."""

    def __init__(self, **left: int) -> None:
        self.left = Counter(left)

    async def admit(self, turns: Sequence[str]) -> Admitted:
        wanted = Counter(turns)
        granted = wanted & self.left
        self.left -= granted
        return Admitted(granted, {queue: 0.05 for queue in wanted if granted[queue] < wanted[queue]})

    def take_permits(self, queue: str) -> Permits:
        return NO_PERMITS

    def return_unused(self, unused: Mapping[str, int]) -> None:
        self.left += Counter(unused)


async def filled(*batches: str) -> Harness:
    harness = Harness()
    for batch in batches:
        await harness.register(batch)
        for number in range(10):
            await harness.queue(f"{batch}-{number}", batch_id=batch)
    return harness


async def ready(harness: Harness, batch: str) -> int:
    [counts] = await harness.tasks.counts([batch])
    assert counts == QueueCounts(ready=counts.ready)
    return counts.ready


@virtually
async def test_no_more_tasks_are_fetched_than_granted():
    """The rest stays in the queue for other executors."""
    harness = await filled("a")
    async with harness.executor(admission=Budget(a=3)):
        await asyncio.sleep(5)
        assert await ready(harness, "a") == 7


@virtually
async def test_slots_of_a_limited_batch_go_to_other_batches():
    """No slot waits for a limit."""
    harness = await filled("limited", "free")
    async with harness.executor(admission=Budget(limited=1, free=10)):
        await until(lambda: harness.is_drained("free"))
        await asyncio.sleep(1)
        assert await ready(harness, "limited") == 9


@virtually
async def test_grants_without_a_task_are_returned():
    """Polling an empty batch consumes no capacity."""
    harness, budget = await filled("a"), Budget(a=10, empty=10)
    await harness.register("empty")
    async with harness.executor(admission=budget):
        await until(lambda: harness.is_drained("a"))
        await asyncio.sleep(10)
    assert budget.left == Counter(empty=10)
