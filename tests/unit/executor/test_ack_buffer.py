"""The ack buffer: acks wait for the log, are sent in batches, and survive outages."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta

from eventlog import payloads as p
from eventlog.log import LogUnavailable
from eventlog.outage import Outage
from eventlog.tasks import end
from executor.ack_buffer import MAX_ACKS, AckBuffer
from executor.contract import TargetReply
from taskqueue.memory import MemoryTaskQueue
from taskqueue.tasks import Delivery, QueueCounts, QueueUnavailable, Task
from tests.unit.executor.harness import ANSWER, Harness, virtually
from tests.unit.executor.steps import LONG, Flaky, asked, counts
from tests.waiting import until


@virtually
async def test_a_task_is_acked_only_after_its_closing_event():
    """While the log is unavailable the task stays in the queue: after a crash it must be redelivered."""
    harness = Harness(LONG)
    log = Flaky(harness.log, LogUnavailable)

    async def lose_the_log(_question):
        log.away = True
        return TargetReply(ANSWER)

    harness.target.how = lose_the_log
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor(log=log):
        await asked(harness)
        await asyncio.sleep(60)
        assert await counts(harness) == QueueCounts(owned=1)
        log.away = False
        await until(harness.is_drained)
    assert isinstance(await harness.last("e-1"), p.Completed)


class RecordingQueue(MemoryTaskQueue):
    """A queue that records the size of every call, and is unavailable at some of them."""

    def __init__(self, *unavailable_at: int) -> None:
        super().__init__(lambda: 0.0)
        self.calls: list[tuple[str, int]] = []
        self._unavailable_at = unavailable_at

    def _call(self, name: str, size: int) -> None:
        self.calls.append((name, size))
        if len(self.calls) in self._unavailable_at:
            raise QueueUnavailable("connection refused")

    async def ack(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        self._call("ack", len(deliveries))
        return await super().ack(consumer, deliveries)

    async def dead_letter(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        self._call("dead_letter", len(deliveries))
        return await super().dead_letter(consumer, deliveries)

    async def nack(self, consumer: str, delivery: Delivery) -> bool:
        self._call("nack", 1)
        return await super().nack(consumer, delivery)


async def delivered(tasks: MemoryTaskQueue, number: int) -> list[Delivery]:
    await tasks.enqueue_batch("batch-1", [Task(f"e-{each}", 1) for each in range(number)])
    return await tasks.consume("worker", {"batch-1": number}, block=timedelta())


async def flush(acks: AckBuffer) -> None:
    running = asyncio.create_task(acks.run())
    await acks.empty()
    await end([running])


@virtually
async def test_acks_are_sent_in_calls_of_limited_size():
    """Dead letters after them, then nacks one by one; the buffer is empty when all are confirmed."""
    tasks = RecordingQueue()
    acks = AckBuffer(tasks, "worker", linger=0.005, outage=Outage("task queue"))
    *done, dead, unstarted = await delivered(tasks, MAX_ACKS + 3)
    for each in done:
        acks.ack(each)
    acks.nack(unstarted)
    acks.dead_letter(dead)
    was_empty = acks.is_empty
    await flush(acks)
    assert (was_empty, acks.is_empty) == (False, True)
    assert tasks.calls == [("ack", MAX_ACKS), ("ack", 1), ("dead_letter", 1), ("nack", 1)]
    assert await tasks.counts(["batch-1"]) == [QueueCounts(ready=1)]


@virtually
async def test_an_ack_that_failed_is_sent_again():
    """Only what was confirmed leaves the buffer; each kind is repeated on its own."""
    tasks = RecordingQueue(1, 3, 5)
    acks = AckBuffer(tasks, "worker", linger=0.005, outage=Outage("task queue"))
    done, dead, unstarted = await delivered(tasks, 3)
    acks.ack(done)
    acks.dead_letter(dead)
    acks.nack(unstarted)
    await flush(acks)
    names = [name for name, _ in tasks.calls]
    assert names == ["ack", "ack", "dead_letter", "dead_letter", "nack", "nack"]
    assert await tasks.counts(["batch-1"]) == [QueueCounts(ready=1)]


@virtually
async def test_a_buffer_with_a_dead_letter_that_failed_is_not_empty():
    """An executor that ends only when the buffer is empty would leave the task to others."""
    tasks = RecordingQueue(1)
    acks = AckBuffer(tasks, "worker", linger=0.005, outage=Outage("task queue"))
    [dead] = await delivered(tasks, 1)
    acks.dead_letter(dead)
    await flush(acks)
    assert tasks.calls == [("dead_letter", 1)] * 2
    assert await tasks.counts(["batch-1"]) == [QueueCounts()]
