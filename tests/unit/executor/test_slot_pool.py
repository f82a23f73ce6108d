"""Slots and active tasks: an interruption reaches only a running call."""

import asyncio

import pytest

from executor.contract import Permanent
from executor.slot_pool import ActiveTask, Interrupted, InterruptReason, SlotPool
from taskqueue.tasks import Delivery, Task

DELIVERY = Delivery("batch-1", "1-0", Task("e-1", 1))
ANOTHER = Delivery("batch-1", "2-0", Task("e-2", 1))


async def hang() -> None:
    await asyncio.get_running_loop().create_future()


async def started(task_in_slot: ActiveTask, work=hang) -> asyncio.Task[None]:
    """Start a call, and run it until it suspends."""
    task = asyncio.create_task(task_in_slot.interruptible(work))
    await asyncio.sleep(0)
    return task


async def test_an_active_task_is_not_acquired_again():
    """A take-over may redeliver the executor's own task: it would be claimed twice."""
    pool = SlotPool(2)
    [task_in_slot] = pool.acquire([DELIVERY])
    assert pool.acquire([DELIVERY]) == []
    assert (len(pool), pool.free) == (1, 1)
    pool.release(task_in_slot)
    assert pool.free == 2


async def test_a_running_call_is_interrupted():
    """It is cancelled, and `Interrupted` carries the reason."""
    task_in_slot = ActiveTask(DELIVERY)
    task = await started(task_in_slot)
    task_in_slot.interrupt(InterruptReason.BATCH_STOPPED)
    with pytest.raises(Interrupted) as caught:
        await task
    assert caught.value.reason is InterruptReason.BATCH_STOPPED
    assert task.cancelling() == 0


async def test_an_interruption_between_calls_stops_the_next_call():
    """Appends to the log in between are not interrupted."""
    task_in_slot = ActiveTask(DELIVERY)
    task_in_slot.interrupt(InterruptReason.SHUTDOWN)
    with pytest.raises(Interrupted):
        await task_in_slot.interruptible(hang)


async def test_a_call_that_cleans_up_is_not_interrupted_again():
    """The registry is polled every second; a target that kills its process needs longer."""
    task_in_slot, clean = ActiveTask(DELIVERY), asyncio.Event()

    async def clean_up() -> None:
        try:
            await hang()
        finally:
            await asyncio.sleep(0)
            clean.set()

    task = await started(task_in_slot, clean_up)
    task_in_slot.interrupt(InterruptReason.BATCH_STOPPED)
    await asyncio.sleep(0)
    task_in_slot.interrupt(InterruptReason.SHUTDOWN)
    with pytest.raises(Interrupted):
        await task
    assert clean.is_set()
    assert task_in_slot.interrupted_by is InterruptReason.BATCH_STOPPED


async def test_an_answer_in_spite_of_an_interruption_is_kept():
    """It was paid for; the next call is interrupted."""
    task_in_slot = ActiveTask(DELIVERY)

    async def insist() -> str:
        try:
            await hang()
        except asyncio.CancelledError:
            return "4"
        return ""

    task = asyncio.create_task(task_in_slot.interruptible(insist))
    await asyncio.sleep(0)
    task_in_slot.interrupt(InterruptReason.SHUTDOWN)
    assert await task == "4"
    assert task.cancelling() == 0
    with pytest.raises(Interrupted):
        await task_in_slot.interruptible(hang)


async def test_a_call_that_cancels_itself_is_a_permanent_fault():
    """No interruption was requested."""

    async def give_in() -> None:
        raise asyncio.CancelledError

    with pytest.raises(Permanent):
        await ActiveTask(DELIVERY).interruptible(give_in)


async def test_a_cancellation_from_outside_passes():
    """A crash of the executor must not be caught by its calls."""
    task = await started(ActiveTask(DELIVERY))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_waiting_for_an_empty_pool():
    """It ends with the last task that is released."""
    pool = SlotPool(2)
    [task_in_slot] = pool.acquire([DELIVERY])
    waiting = asyncio.create_task(pool.empty())
    await asyncio.sleep(0)
    assert not waiting.done()
    pool.release(task_in_slot)
    await waiting


async def test_a_slot_is_free_once_the_closing_event_is_recorded():
    """Only its acknowledgement is awaited; the task stays active until then."""
    pool = SlotPool(2)
    first, _second = pool.acquire([DELIVERY, ANOTHER])
    assert pool.free == 0
    first.mark_recorded()
    first.mark_recorded()
    assert (pool.free, pool.busy, len(pool)) == (1, 1, 2)
    pool.release(first)
    assert (pool.free, pool.busy, len(pool)) == (1, 1, 1)


async def test_no_slot_is_free_while_too_many_closing_events_are_unacknowledged():
    """During an outage of the log an executor does not fetch more and more."""
    pool = SlotPool(2)
    for task_in_slot in pool.acquire([DELIVERY, ANOTHER]):
        task_in_slot.mark_recorded()
    assert pool.free == 0
