"""What is in hand: one slot each, and an interruption reaches only who is at work."""

import asyncio

import pytest

from executor.contract import Permanent
from executor.slot_pool import ActiveTask, Interrupted, InterruptReason, SlotPool
from taskqueue.tasks import Delivery, Task

DELIVERY = Delivery("batch-1", "1-0", Task("e-1", 1))
ANOTHER = Delivery("batch-1", "2-0", Task("e-2", 1))


async def hang() -> None:
    await asyncio.get_running_loop().create_future()


async def started(hand: ActiveTask, work=hang) -> asyncio.Task[None]:
    """Begin some work, and come to the point where it waits."""
    task = asyncio.create_task(hand.interruptible(work))
    await asyncio.sleep(0)
    return task


async def test_what_is_in_hand_is_not_taken_again():
    """A task of one's own may come back from a take-over: it would be claimed twice."""
    hands = SlotPool(2)
    [hand] = hands.acquire([DELIVERY])
    assert hands.acquire([DELIVERY]) == []
    assert (len(hands), hands.free) == (1, 1)
    hands.release(hand)
    assert hands.free == 2


async def test_work_is_interrupted():
    """Whoever is at work is cancelled, and hears why."""
    hand = ActiveTask(DELIVERY)
    task = await started(hand)
    hand.interrupt(InterruptReason.BATCH_STOPPED)
    with pytest.raises(Interrupted) as caught:
        await task
    assert caught.value.reason is InterruptReason.BATCH_STOPPED
    assert task.cancelling() == 0


async def test_what_is_not_at_work_finds_out_when_it_would_begin():
    """What is said to the log in between is said to its end."""
    hand = ActiveTask(DELIVERY)
    hand.interrupt(InterruptReason.SHUTDOWN)
    with pytest.raises(Interrupted):
        await hand.interruptible(hang)


async def test_who_cleans_up_after_an_interruption_is_not_interrupted_again():
    """The batch registry is looked at every second; a target that kills its process needs longer."""
    hand, clean = ActiveTask(DELIVERY), asyncio.Event()

    async def clean_up() -> None:
        try:
            await hang()
        finally:
            await asyncio.sleep(0)
            clean.set()

    task = await started(hand, clean_up)
    hand.interrupt(InterruptReason.BATCH_STOPPED)
    await asyncio.sleep(0)
    hand.interrupt(InterruptReason.SHUTDOWN)
    with pytest.raises(Interrupted):
        await task
    assert clean.is_set()
    assert hand.interrupted_by is InterruptReason.BATCH_STOPPED


async def test_an_answer_that_comes_in_spite_of_an_interruption_is_taken():
    """It was paid for; what would follow is interrupted."""
    hand = ActiveTask(DELIVERY)

    async def insist() -> str:
        try:
            await hang()
        except asyncio.CancelledError:
            return "4"
        return ""

    task = asyncio.create_task(hand.interruptible(insist))
    await asyncio.sleep(0)
    hand.interrupt(InterruptReason.SHUTDOWN)
    assert await task == "4"
    assert task.cancelling() == 0
    with pytest.raises(Interrupted):
        await hand.interruptible(hang)


async def test_work_that_cancels_itself_has_failed():
    """Nobody asked for it."""

    async def give_in() -> None:
        raise asyncio.CancelledError

    with pytest.raises(Permanent):
        await ActiveTask(DELIVERY).interruptible(give_in)


async def test_a_cancellation_from_outside_passes():
    """Whoever ends the whole executor is not to be stopped by its work."""
    task = await started(ActiveTask(DELIVERY))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_waiting_for_empty_hands():
    """It ends with the last task that is let go."""
    hands = SlotPool(2)
    [hand] = hands.acquire([DELIVERY])
    waiting = asyncio.create_task(hands.empty())
    await asyncio.sleep(0)
    assert not waiting.done()
    hands.release(hand)
    await waiting


async def test_a_slot_is_free_as_soon_as_the_end_is_written():
    """Only the log's answer is waited for then; the task stays in hand until it is there."""
    hands = SlotPool(2)
    first, _second = hands.acquire([DELIVERY, ANOTHER])
    assert hands.free == 0
    first.mark_recorded()
    first.mark_recorded()
    assert (hands.free, hands.busy, len(hands)) == (1, 1, 2)
    hands.release(first)
    assert (hands.free, hands.busy, len(hands)) == (1, 1, 1)


async def test_no_slot_is_free_while_the_log_is_a_whole_handful_behind():
    """Through an outage an executor does not take on more and more."""
    hands = SlotPool(2)
    for hand in hands.acquire([DELIVERY, ANOTHER]):
        hand.mark_recorded()
    assert hands.free == 0
