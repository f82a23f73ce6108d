"""An executor's life: its registry, shutdown, and failures of its loops."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from eventlog import payloads as p
from taskqueue.batch_registry import BatchState
from taskqueue.tasks import QueueCounts
from tests.builders import BATCH
from tests.unit.executor.harness import (
    SETTINGS,
    FakeEvaluator,
    Harness,
    hang,
    judged_by,
    virtually,
)
from tests.unit.executor.steps import LONG, Flaky, asked, counts, taking
from tests.waiting import until

# The batch registry.


@virtually
async def test_an_idle_executor_polls_the_registry_often():
    """Executors that polled a second apart would leave slots empty while others are busy."""
    harness = Harness()
    harness.target.how = hang
    async with harness.executor():
        await asyncio.sleep(10.05)
        await harness.queue("e-1")
        await harness.register()
        announced = harness.loop.time()
        await asked(harness)
        assert harness.loop.time() - announced < 0.3
        await harness.register(state=BatchState.STOPPED)


@virtually
async def test_an_answer_of_a_stopped_batch_is_recorded():
    """It was being scored when the batch stopped: it was paid for."""
    harness = Harness(replace(LONG, evaluators=judged_by("a", timeout=9_000.0)))
    harness.evaluators["a"] = FakeEvaluator(hang)
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await until(lambda: harness.evaluators["a"].judged)
        await harness.register(state=BatchState.STOPPED)
        await until(harness.is_drained)
    assert await harness.story("e-1") == "queued provisioning running responded"


# Leaving.


@virtually
async def test_stop_drains_active_tasks():
    """During the drain no task is interrupted and none is fetched."""
    harness = Harness(LONG, replace(SETTINGS, slots=1))
    harness.target.how = taking(15)
    await harness.register()
    await harness.queue("e-1")
    await harness.queue("e-2")
    async with harness.executor():
        await asked(harness)
    assert isinstance(await harness.last("e-1"), p.Completed)
    assert await counts(harness) == QueueCounts(ready=1)
    assert await harness.executor_registry.live() == []
    assert harness.target.closed == 1


@virtually
async def test_attempts_that_outlast_the_drain_are_closed_as_uncharged_retries():
    """The target is cancelled, the attempt closed, and another executor may retry at once."""
    harness = Harness(LONG)
    harness.target.how = hang
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await asked(harness)
    closing = await harness.last("e-1")
    assert isinstance(closing, p.Retrying)
    assert closing.error.kind == "shutdown"
    assert closing.retry_at <= harness.now()
    assert harness.target.cancelled == 1
    assert await harness.is_drained()


@virtually
async def test_a_target_that_ignores_cancellation_does_not_block_shutdown():
    """Some libraries swallow it: after the shutdown grace the executor ends all the same."""
    harness = Harness(LONG)

    async def insist(_question):
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(3_000)
        await asyncio.sleep(3_000)

    harness.target.how = insist
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await asked(harness)
    assert harness.loop.time() < 100


@virtually
async def test_once_ends_when_no_task_is_left():
    """Tasks that other executors hold are waited for, too."""
    harness = Harness(settings=replace(SETTINGS, once=True))
    await harness.register()
    await harness.queue("e-1")
    [other] = await harness.tasks.consume("other", {BATCH: 1}, block=timedelta(0))
    async with harness.executor() as executor:
        await asyncio.sleep(10)
        assert not executor._stop_requested.is_set()
        await harness.tasks.nack("other", other)
        await until(executor._stop_requested.is_set, timeout=200)
    assert isinstance(await harness.last("e-1"), p.Completed)


@virtually
async def test_a_cancelled_executor_records_nothing_more():
    """Cancelling an executor outright is a crash: no attempt is closed, no task acked."""
    harness = Harness(LONG)
    harness.target.how = hang
    await harness.register()
    await harness.queue("e-1")
    with pytest.raises(asyncio.CancelledError):
        await _be_killed(harness)
    assert await harness.story("e-1") == "queued provisioning running"
    assert await counts(harness) == QueueCounts(owned=1)


async def _be_killed(harness: Harness) -> None:
    async with harness.executor():
        await asked(harness)
        for task in asyncio.all_tasks():
            if "Executor.run" in repr(task.get_coro()):
                task.cancel()
        await asyncio.sleep(1)


# Failures.


@pytest.mark.parametrize(
    ("port", "method"),
    [("tasks", "consume"), ("tasks", "extend"), ("tasks", "ack"), ("batch_registry", "list")],
)
@virtually
async def test_a_loop_that_fails_ends_the_executor(port, method):
    """An executor without one of its loops would fail silently; its supervisor restarts it."""
    harness = Harness()
    harness.target.how = taking(7)
    broken = Flaky(getattr(harness, port))

    async def break_down(*_args, **_kwargs):
        raise RuntimeError("a bug")

    setattr(broken, method, break_down)
    await harness.register()
    await harness.queue("e-1")
    with pytest.raises(RuntimeError, match="a bug"):
        async with harness.executor(**{port: broken}) as executor:
            await until(executor._stop_requested.is_set, timeout=60)
