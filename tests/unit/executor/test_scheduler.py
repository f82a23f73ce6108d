"""The scheduler: which tasks are fetched, taken over, and returned."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from eventlog import payloads as p
from taskqueue.batch_registry import BatchState
from taskqueue.tasks import QueueCounts
from tests.builders import BATCH
from tests.unit.executor.harness import SETTINGS, Harness, virtually
from tests.unit.executor.steps import LONG, counts, done, taking
from tests.waiting import until


@virtually
async def test_a_large_batch_does_not_starve_a_small_one():
    """Slots are shared by priority."""
    harness = Harness(LONG, replace(SETTINGS, slots=2))
    harness.target.how = taking(1)
    await harness.register("large")
    await harness.register("small")
    for number in range(100):
        await harness.queue(f"l-{number}", batch_id="large")
    for number in range(3):
        await harness.queue(f"s-{number}", batch_id="small")
    async with harness.executor():
        await until(lambda: harness.is_drained("small"), timeout=20)
        assert (await counts(harness, "large")).ready > 80
        for batch in ("large", "small"):
            await harness.register(batch, state=BatchState.STOPPED)


@virtually
async def test_tasks_delivered_during_shutdown_are_nacked():
    """A fetch was under way: its tasks are not claimed, so other executors may have them."""
    harness = Harness()
    held = asyncio.Event()

    class Slow(type(harness.tasks)):  # type: ignore[misc]
        async def consume(self, consumer, wanted, *, block):
            taken = await super().consume(consumer, wanted, block=block)
            if taken:
                held.set()
                await asyncio.sleep(3)
            return taken

    harness.tasks = Slow(harness.clock)
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await held.wait()
    assert await counts(harness) == QueueCounts(ready=1)
    assert await harness.story("e-1") == "queued"


@virtually
async def test_a_full_event_queue_stops_fetching():
    """Backpressure: an attempt whose events can't be buffered must not start."""
    harness = Harness()
    await harness.register()
    async with harness.executor() as executor:
        outbox = executor._ports.events.outbox
        outbox.max_bytes = 0
        await asyncio.sleep(5)
        await harness.queue("e-1")
        await asyncio.sleep(5)
        assert (await counts(harness)).ready == 1
        outbox.max_bytes = 10**7
        await until(harness.is_drained)


@virtually
async def test_a_task_of_a_dead_consumer_is_taken_over():
    """Its consumer died before the claim."""
    harness = Harness()
    await harness.register()
    await harness.queue("e-1")
    await harness.tasks.consume("dead", {BATCH: 1}, block=timedelta(0))
    async with harness.executor():
        await done(harness)
    assert isinstance(await harness.last("e-1"), p.Completed)
    assert harness.loop.time() > 30
