"""The contract of the task queue: stalled claims, dead letters, counts and data loss."""

import asyncio
from datetime import timedelta

import pytest

from taskqueue.queue_layout import queue_name
from taskqueue.tasks import QueueCounts, Task
from tests.conformance.taskqueue.queue_forms import BATCH, LATER, NOW, OTHER, SOON, numbers, put, take, task
from tests.waiting import until

# Stalled claims.


async def test_a_stalled_task_can_be_claimed(queues):
    """The new owner sees that it was delivered before, and the former owner owns nothing."""
    await put(queues, 1, 2)
    (lost,) = await take(queues, "a", 1)
    assert await queues.tasks.claim_stalled("b", [BATCH], idle=LATER, limit=9) == []
    await queues.pass_time(SOON)
    (taken,) = await queues.tasks.claim_stalled("b", ["batch-0", BATCH], idle=SOON, limit=9)
    assert (taken.id, taken.task, lost.deliveries, taken.deliveries) == (lost.id, lost.task, 1, 2)
    assert (lost.claimed_from, taken.claimed_from) == ("", "a")
    assert await queues.tasks.ack("a", [lost]) == 0
    assert await queues.tasks.ack("b", [taken]) == 1


async def test_deliveries_are_counted(queues):
    """A task that ends one consumer after another shows in its count."""
    await put(queues, 1)
    await take(queues, "a")
    taken = [await queues.tasks.claim_stalled(name, [BATCH], idle=NOW, limit=1) for name in "bcd"]
    assert [each[0].deliveries for each in taken] == [2, 3, 4]


async def test_no_more_stalled_tasks_are_claimed_than_requested(queues):
    """The limit holds for all batches together, oldest first."""
    await put(queues, 1, 2, 3)
    await put(queues, 4, 5, batch=OTHER)
    await queues.tasks.consume("a", {BATCH: 9, OTHER: 9}, block=NOW)
    taken = await queues.tasks.claim_stalled("b", [BATCH, OTHER], idle=NOW, limit=4)
    assert numbers(taken) == [1, 2, 3, 4]


async def test_stalled_tasks_are_found_behind_many_active_ones(queues):
    """A stalled task is found however many tasks other consumers own."""
    await put(queues, *range(300))
    held = await take(queues, "a", 299)
    await take(queues, "dead", 1)
    await queues.pass_time(SOON)
    await queues.tasks.extend("a", held)
    assert numbers(await queues.tasks.claim_stalled("b", [BATCH], idle=SOON, limit=1)) == [299]


async def test_an_extended_task_is_not_stalled(queues):
    """Extending restarts its time, is no further delivery, and returns the tasks that are still owned."""
    await put(queues, 1, 2)
    held, lost = await take(queues, "a")
    await queues.pass_time(SOON)
    assert await queues.tasks.extend("a", [held]) == [held]
    assert numbers(await queues.tasks.claim_stalled("b", [BATCH], idle=SOON, limit=9)) == [2]
    assert await queues.tasks.extend("a", [lost, held]) == [held]
    (again,) = await queues.tasks.claim_stalled("b", [BATCH], idle=NOW, limit=1)
    assert (again.id, again.deliveries) == (held.id, 2)


async def test_a_consumer_can_claim_its_own_stalled_task(queues):
    """The reply that delivered it may have been lost."""
    await put(queues, 1)
    await take(queues, "a")
    assert numbers(await queues.tasks.claim_stalled("a", [BATCH], idle=NOW, limit=1)) == [1]


# Dead letters, counts and deletion.


async def test_a_dead_letter_leaves_the_queue(queues):
    """Only tasks that the consumer owns are removed; no other key is written."""
    await put(queues, 1, 2)
    first, second = await take(queues)
    assert await queues.tasks.dead_letter("a", [first, second]) == 2
    assert await queues.tasks.dead_letter("a", [first]) == 0
    assert (await queues.tasks.counts([BATCH]))[0].is_drained
    await queues.tasks.delete(BATCH)
    assert await queues.left_behind() == set()


async def test_counts_are_by_state(queues):
    """Ready and owned add up; an unknown batch has no tasks."""
    await put(queues, 1, 2, 3)
    assert await queues.tasks.counts([BATCH]) == [QueueCounts(ready=3)]
    await take(queues, "a", 1)
    assert await queues.tasks.counts(["batch-0", BATCH]) == [QueueCounts(), QueueCounts(2, 1)]
    assert QueueCounts().is_drained
    assert not any(counts.is_drained for counts in (QueueCounts(ready=1), QueueCounts(owned=1)))


async def test_a_deleted_queue_leaves_nothing_behind(queues):
    """Neither ready nor owned tasks; a late ack changes nothing."""
    await put(queues, 1, 2)
    held = await take(queues, "a", 1)
    await queues.tasks.delete(BATCH)
    assert await queues.tasks.ack("a", held) == 0
    assert await queues.tasks.nack("a", held[0]) is False
    assert await queues.tasks.dead_letter("a", held) == 0
    assert await queues.tasks.extend("a", held) == []
    assert await queues.tasks.claim_stalled("a", [BATCH], idle=NOW, limit=9) == []
    assert await queues.tasks.counts([BATCH]) == [QueueCounts()]
    assert await queues.left_behind() == set()


# Data loss in Redis.


async def test_the_queue_works_after_data_loss(queues):
    """Former deliveries are void; tasks enqueued afterwards are delivered, counted and acked."""
    await put(queues, 1, 2)
    (held,) = await take(queues, "a", 1)
    await queues.lose_everything()
    assert await queues.tasks.counts([BATCH]) == [QueueCounts()]
    assert await queues.tasks.ack("a", [held]) == 0
    assert await queues.tasks.extend("a", [held]) == []
    assert await queues.tasks.claim_stalled("a", [BATCH], idle=NOW, limit=9) == []
    await put(queues, 3)
    assert await queues.tasks.counts([BATCH]) == [QueueCounts(ready=1)]
    assert numbers(again := await take(queues)) == [3]
    assert await queues.tasks.ack("a", again) == 1


async def test_a_waiting_consumer_survives_data_loss(queues):
    """A consumer that waits meanwhile gets the tasks that are enqueued afterwards."""
    waiting = asyncio.create_task(queues.tasks.consume("a", {BATCH: 1}, block=timedelta(seconds=30)))
    await until(queues.has_waiting_consumer)
    await queues.lose_everything()
    await put(queues, 1)
    assert numbers(await asyncio.wait_for(waiting, 3)) == [1]


@pytest.mark.parametrize(
    "name", ["a:b:c", "{x}", "é ☃", "a b"], ids=["colons", "braces", "unicode", "space"]
)
async def test_any_name_is_valid(queues, name):
    """Names of batches, evaluations and consumers break no key and no script."""
    odd = Task(name, 3)
    await queues.tasks.enqueue(name, odd)
    (held,) = await queues.tasks.consume(name, {name: 1}, block=NOW)
    assert (held.batch_id, held.task) == (name, odd)
    assert await queues.tasks.nack(name, held)
    (held,) = await queues.tasks.consume(name, {name: 1}, block=NOW)
    assert held.task == odd
    assert await queues.tasks.ack(name, [held]) == 1


async def test_partitions_of_one_batch_are_separate_queues(queues):
    """A task of one is not delivered from another; all named partitions are deleted together."""
    scoring = queue_name(BATCH, "scoring")
    await queues.tasks.enqueue(scoring, task(1))
    await queues.tasks.enqueue(BATCH, task(3))
    assert await queues.tasks.counts([BATCH, scoring]) == [
        QueueCounts(ready=1),
        QueueCounts(ready=1),
    ]
    taken = await queues.tasks.consume("a", {scoring: 9, BATCH: 9}, block=NOW)
    assert {each.queue: each.task for each in taken} == {scoring: task(1), BATCH: task(3)}
    assert {each.batch_id for each in taken} == {BATCH}
    assert await queues.tasks.extend("a", taken) == taken
    await queues.tasks.delete(BATCH, ["", "scoring"])
    assert await queues.tasks.counts([BATCH, scoring]) == [QueueCounts(), QueueCounts()]
