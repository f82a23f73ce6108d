"""The queue in memory under a loop whose time is virtual: nothing waits longer than it must."""

import asyncio
from datetime import timedelta

from taskqueue.memory import MemoryTaskQueue
from taskqueue.tasks import Task
from tests.simulation.virtual_loop import VirtualLoop, run_virtually

TASK = Task("e", 1)


def seconds(number: float) -> timedelta:
    return timedelta(seconds=number)


def test_who_waits_is_woken_when_a_delay_is_over():
    """To the millisecond, however long the block; and whoever comes away empty waited it out."""
    loop = VirtualLoop()
    queue = MemoryTaskQueue(loop.time)

    async def story() -> tuple[Task, float, float]:
        await queue.enqueue("b", TASK, delay=seconds(7))
        (taken,) = await queue.consume("a", {"b": 3}, block=seconds(3_600))
        woken = loop.time()
        assert await queue.consume("a", {"b": 3}, block=seconds(10)) == []
        return taken.task, woken, loop.time()

    task, woken, empty = run_virtually(story(), loop)
    assert task == TASK
    assert 7 <= woken < 7.01
    assert 17 <= empty < 17.02


def test_who_waits_is_woken_by_what_is_added_meanwhile():
    """Also by a delay that begins, and ends, while it waits; two who wait share out what comes."""
    loop = VirtualLoop()
    queue = MemoryTaskQueue(loop.time)

    async def one(consumer: str) -> tuple[int, float]:
        taken = await queue.consume(consumer, {"b": 1}, block=seconds(3_600))
        return len(taken), loop.time()

    async def story() -> list[tuple[int, float]]:
        waiting = asyncio.gather(one("a"), one("b"))
        await asyncio.sleep(5)
        await queue.enqueue("b", TASK)
        await queue.enqueue("b", TASK, delay=seconds(2.5))
        return list(await waiting)

    first, second = sorted(run_virtually(story(), loop), key=lambda each: each[1])
    assert (first[0], second[0]) == (1, 1)
    assert first[1] == 5
    assert 7.5 <= second[1] < 7.51
