"""Heartbeats: registration, and the visibility of active tasks."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from domain.batch_spec import BatchSpec
from executor.contract import TargetReply
from executor.settings import Timings
from tests.builders import BATCH
from tests.unit.executor.harness import ANSWER, SETTINGS, TARGET, Harness, virtually
from tests.unit.executor.steps import Flaky, done


@virtually
async def test_an_executor_that_never_reached_its_queue_can_be_stopped():
    """It is not registered, so it has nothing to drain."""
    harness = Harness()
    away = {
        "tasks": Flaky(harness.tasks),
        "batch_registry": Flaky(harness.batch_registry),
        "executor_registry": Flaky(harness.executor_registry),
    }
    for port in away.values():
        port.away = True
    async with harness.executor(**away):
        await asyncio.sleep(30)
    assert harness.loop.time() < 60


@virtually
async def test_a_long_task_is_not_taken_over():
    """Each heartbeat extends it, and the executor stays registered."""
    no_take_over = Timings(take_over_every=timedelta(days=1))  # of its own task, which would extend it, too
    harness = Harness(
        BatchSpec("batch", (TARGET,), timeout=1_000.0), replace(SETTINGS, timings=no_take_over)
    )

    async def take_long(_question):
        await asyncio.sleep(600)
        return TargetReply(ANSWER)

    harness.target.how = take_long
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor() as executor:
        await asyncio.sleep(300)
        idle = await harness.tasks.claim_stalled("other", [BATCH], idle=timedelta(seconds=30), limit=9)
        assert idle == []
        assert await harness.executor_registry.filter_live([executor.instance_id])
        [present] = await harness.executor_registry.live()
        assert (present.busy, present.slots) == (1, SETTINGS.slots)
        await done(harness)
    assert len(harness.target.asked) == 1


@virtually
async def test_an_idle_executor_confirms_a_new_epoch_within_a_second_or_two():
    """Its heartbeat carries the confirmation at once, not with the next interval."""
    harness = Harness(BatchSpec("batch", (TARGET,)))
    await harness.register()
    async with harness.executor():
        await asyncio.sleep(6.5)
        harness.log.restart()
        await asyncio.sleep(1.5)
        [present] = await harness.executor_registry.live()
        assert list(present.epochs) == await harness.log.epochs()
