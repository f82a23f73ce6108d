"""The queue in memory on an event loop with virtual time: no call waits longer than it must."""

import asyncio
from datetime import timedelta

from taskqueue.memory import MemoryTaskQueue
from taskqueue.tasks import Task
from tests.simulation.virtual_loop import VirtualLoop, run_virtually

TASK = Task("e", 1)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_a_consumer_without_tasks_waits_for_the_whole_block():
    """The wait is exact to the millisecond of virtual time."""
    loop = VirtualLoop()
    queue = MemoryTaskQueue(loop.time)

    async def wait() -> float:
        assert await queue.consume("a", {"b": 3}, block=seconds(10)) == []
        return loop.time()

    assert 10 <= run_virtually(wait(), loop) < 10.01


def test_waiting_consumers_share_the_tasks_that_are_added():
    """Each gets one as soon as it is enqueued."""
    loop = VirtualLoop()
    queue = MemoryTaskQueue(loop.time)

    async def one(consumer: str) -> tuple[int, float]:
        taken = await queue.consume(consumer, {"b": 1}, block=seconds(3_600))
        return len(taken), loop.time()

    async def deliveries() -> list[tuple[int, float]]:
        waiting = asyncio.gather(one("a"), one("b"))
        await asyncio.sleep(5)
        await queue.enqueue("b", TASK)
        await asyncio.sleep(2.5)
        await queue.enqueue("b", TASK)
        return list(await waiting)

    first, second = sorted(run_virtually(deliveries(), loop), key=lambda each: each[1])
    assert (first[0], second[0]) == (1, 1)
    assert first[1] == 5
    assert 7.5 <= second[1] < 7.51
