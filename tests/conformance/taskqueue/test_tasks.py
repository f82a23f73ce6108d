"""The contract of the task queue: delivery, waiting, ack and nack."""

import asyncio
from datetime import timedelta

import pytest

from taskqueue.tasks import QueueCounts
from tests.conformance.taskqueue.queue_forms import BATCH, LATER, NOW, OTHER, numbers, put, take, task
from tests.waiting import until

# Delivery.


async def test_tasks_are_delivered_in_the_order_of_enqueueing(queues):
    """First in, first out, whether enqueued one by one or together."""
    await queues.tasks.enqueue(BATCH, task(1))
    await put(queues, 2, 3)
    await queues.tasks.enqueue(BATCH, task(4, attempt=7))
    taken = await take(queues)
    assert [each.task for each in taken] == [task(1), task(2), task(3), task(4, attempt=7)]
    assert {each.batch_id for each in taken} == {BATCH}


async def test_every_message_has_its_own_id(queues):
    """Enqueue returns the ids of the deliveries; the same task twice is two messages."""
    ids = await queues.tasks.enqueue_batch(BATCH, [task(1), task(1), task(2)])
    assert [each.id for each in await take(queues)] == ids
    assert len(set(ids)) == 3


async def test_empty_calls_do_nothing(queues):
    """Calls with no tasks succeed and write no key."""
    assert await queues.tasks.enqueue_batch(BATCH, []) == []
    assert await queues.tasks.ack("a", []) == 0
    assert await queues.tasks.extend("a", []) == []
    assert await queues.tasks.counts([]) == []
    assert await queues.left_behind() == set()


async def test_a_task_is_delivered_once(queues):
    """Two consumers never own the same message."""
    await put(queues, 1, 2, 3)
    assert numbers(await take(queues, "a", 2)) == [1, 2]
    assert numbers(await take(queues, "b", 2)) == [3]
    assert await take(queues, "a") == []


async def test_each_batch_delivers_at_most_the_requested_number(queues):
    """Counts are per batch, and a batch with a count of zero is not read."""
    await put(queues, 1, 2, 3)
    await put(queues, 4, 5, 6, batch=OTHER)
    taken = await queues.tasks.consume("a", {BATCH: 1, OTHER: 2, "batch-3": 5}, block=NOW)
    assert [(each.batch_id, *numbers([each])) for each in taken] == [(BATCH, 1), (OTHER, 4), (OTHER, 5)]
    assert await queues.tasks.consume("a", {BATCH: 0, OTHER: -1}, block=LATER) == []


async def test_large_requests_are_split_into_several_calls(queues):
    """The caller gets all tasks at once."""
    many = [task(number) for number in range(2_500)]
    assert len(set(await queues.tasks.enqueue_batch(BATCH, many))) == 2_500
    taken = await take(queues, limit=2_500)
    assert [each.task for each in taken] == many
    assert await queues.tasks.extend("a", taken) == taken
    assert await queues.tasks.ack("a", taken) == 2_500


# Waiting.


async def test_a_waiting_consumer_is_woken_by_the_first_task(queues):
    """A consumer waits on all its batches at once, also on those without a stream."""
    waiting = asyncio.create_task(
        queues.tasks.consume("a", {BATCH: 2, OTHER: 2}, block=timedelta(seconds=30))
    )
    await until(queues.has_waiting_consumer)
    await put(queues, 1, batch=OTHER)
    assert numbers(await asyncio.wait_for(waiting, 3)) == [1]


async def test_waiting_ends_after_its_time_out(queues):
    """A consumer without tasks returns after the given time."""
    async with asyncio.timeout(3):
        assert await queues.tasks.consume("a", {BATCH: 1}, block=timedelta(milliseconds=20)) == []


async def test_a_waiting_consumer_can_be_cancelled(queues):
    """A task enqueued afterwards is ready, or is claimed as stalled; it is never lost."""
    waiting = asyncio.create_task(queues.tasks.consume("a", {BATCH: 2}, block=LATER))
    await until(queues.has_waiting_consumer)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await put(queues, 1)
    ready = await take(queues, "b")
    assert numbers(ready or await queues.tasks.claim_stalled("b", [BATCH], idle=NOW, limit=9)) == [1]


# Ack, nack and dead letter: only by the owner.


async def test_an_acked_task_is_gone(queues):
    """It is not counted any more, and is not delivered again."""
    await put(queues, 1, 2)
    first, second = await take(queues)
    assert await queues.tasks.ack("a", [first]) == 1
    assert await queues.tasks.counts([BATCH]) == [QueueCounts(owned=1)]
    assert await queues.tasks.ack("a", [first, second, second]) == 1
    assert (await queues.tasks.counts([BATCH]))[0].is_drained
    assert await queues.tasks.claim_stalled("b", [BATCH], idle=NOW, limit=9) == []


async def test_acks_of_several_batches_share_a_call(queues):
    """Messages of different batches may have the same id, and are not confused."""
    await put(queues, 1)
    await put(queues, 2, batch=OTHER)
    taken = await queues.tasks.consume("a", {BATCH: 9, OTHER: 9}, block=NOW)
    assert await queues.tasks.extend("a", taken) == taken
    assert await queues.tasks.ack("a", taken) == 2
    assert await queues.tasks.counts([BATCH, OTHER]) == [QueueCounts(), QueueCounts()]


async def test_only_the_owner_acks_nacks_and_extends(queues):
    """Ack, nack, dead letter and extend of another consumer change nothing."""
    await put(queues, 1)
    (held,) = await take(queues, "a")
    assert await queues.tasks.ack("b", [held]) == 0
    assert await queues.tasks.nack("b", held) is False
    assert await queues.tasks.dead_letter("b", [held]) == 0
    assert await queues.tasks.extend("b", [held]) == []
    assert await queues.tasks.counts([BATCH]) == [QueueCounts(owned=1)]
    assert await queues.tasks.ack("a", [held]) == 1


async def test_a_nacked_task_is_delivered_again(queues):
    """It goes to the end of the queue, as a new message; the old message is invalid."""
    await put(queues, 1, 2)
    (held,) = await take(queues, "a", 1)
    assert await queues.tasks.nack("a", held) is True
    assert await queues.tasks.nack("a", held) is False
    assert await queues.tasks.ack("a", [held]) == 0
    assert numbers(again := await take(queues, "b")) == [2, 1]
    assert (again[1].task, again[1].deliveries) == (held.task, 1)
