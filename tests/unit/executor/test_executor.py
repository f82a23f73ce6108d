"""An executor's life: pauses, stops, shutdown, outages, eligibility."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from domain.batch_spec import BatchSpec
from domain.eligibility import Eligibility
from eventlog import payloads as p
from eventlog.log import LogUnavailable
from executor.contract import TargetReply
from executor.settings import Timings
from taskqueue.batch_registry import BatchState
from taskqueue.tasks import QueueCounts, QueueUnavailable
from tests.builders import BATCH
from tests.unit.executor.harness import (
    ANSWER,
    SETTINGS,
    TARGET,
    FakeEvaluator,
    Harness,
    hang,
    judged_by,
    virtually,
)
from tests.waiting import until

LONG = BatchSpec("batch", (TARGET,), timeout=10_000.0)


def taking(seconds: float):
    async def ask(_question):
        await asyncio.sleep(seconds)
        return TargetReply(ANSWER)

    return ask


async def counts(harness: Harness, batch_id: str = BATCH) -> QueueCounts:
    [found] = await harness.tasks.counts([batch_id])
    return found


async def asked(harness: Harness, number: int = 1) -> None:
    await until(lambda: len(harness.target.asked) >= number)


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
async def test_a_pause_stops_fetching_and_lets_active_tasks_finish():
    """Started attempts finish; other tasks stay in the queue."""
    harness = Harness(LONG, replace(SETTINGS, slots=1))
    harness.target.how = taking(30)
    await harness.register()
    await harness.queue("e-1")
    await harness.queue("e-2")
    async with harness.executor():
        await asked(harness)
        await harness.register(state=BatchState.PAUSED)
        await asyncio.sleep(60)
        assert isinstance(await harness.last("e-1"), p.Completed)
        assert await counts(harness) == QueueCounts(ready=1)
        await harness.register()
        await until(harness.is_drained, timeout=100)
    assert isinstance(await harness.last("e-2"), p.Completed)


@virtually
async def test_active_tasks_of_a_stopped_batch_are_interrupted():
    """The target is cancelled at the next poll of the batch registry; the attempt is left open."""
    harness = Harness(LONG)
    harness.target.how = hang
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor() as executor:
        await asked(harness)
        await harness.register(state=BatchState.STOPPED)
        await until(lambda: harness.target.cancelled)
        await until(harness.is_drained)
        assert executor.slot_pool.free == SETTINGS.slots
    assert await harness.story("e-1") == "queued provisioning running"


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


@virtually
async def test_a_batch_of_another_project_is_not_served():
    """Executors may be reserved for a project."""
    harness = Harness(settings=replace(SETTINGS, eligibility=Eligibility(project="search")))
    await harness.register("theirs", project="ads")
    await harness.register("ours", project="search")
    await harness.queue("e-1", batch_id="theirs")
    await harness.queue("e-2", batch_id="ours")
    async with harness.executor():
        await until(lambda: harness.is_drained("ours"))
        await asyncio.sleep(10)
    assert await counts(harness, "theirs") == QueueCounts(ready=1)


@virtually
async def test_the_runtime_of_an_unregistered_batch_is_closed():
    """Its targets and evaluators are closed, but not before its active tasks are done."""
    harness = Harness(replace(LONG, evaluators=judged_by("a")))
    harness.target.how = taking(20)
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await asked(harness)
        await harness.batch_registry.unregister(BATCH)
        await asyncio.sleep(10)
        assert harness.target.closed == 0
        await until(lambda: harness.target.closed, timeout=60)
        assert harness.evaluators["a"].closed == 1
    assert isinstance(await harness.last("e-1"), p.Completed)


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


# Outages.


class Flaky:
    """A queue, a registry or a log that is unavailable for a while."""

    def __init__(self, inner: Any, error: type[Exception] = QueueUnavailable) -> None:
        self._inner = inner
        self._error = error
        self.away = False

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._inner, name)
        if not callable(method):
            return method

        async def call(*args: Any, **kwargs: Any) -> Any:
            if self.away:
                raise self._error("connection refused")
            return await method(*args, **kwargs)

        return call


@virtually
async def test_an_outage_of_the_queue_is_waited_out(caplog):
    """It is logged once, active tasks go on, and acks are sent afterwards."""
    harness = Harness(LONG, replace(SETTINGS, timings=Timings(take_over_every=timedelta(days=1))))
    harness.target.how = taking(20)
    ports = {
        "tasks": Flaky(harness.tasks),
        "batch_registry": Flaky(harness.batch_registry),
        "executor_registry": Flaky(harness.executor_registry),
    }
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor(**ports):
        await asked(harness)
        for port in ports.values():
            port.away = True
        await asyncio.sleep(60)
        assert isinstance(await harness.last("e-1"), p.Completed)
        assert await counts(harness) == QueueCounts(owned=1)
        for port in ports.values():
            port.away = False
        await until(harness.is_drained)
        await harness.queue("e-2")
        await until(harness.is_drained, timeout=60)
    logged = [record.message for record in caplog.records if "unavailable" in record.message]
    assert len(logged) == 1
    assert isinstance(await harness.last("e-2"), p.Completed)


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
async def test_a_lost_batch_registry_does_not_interrupt_active_tasks():
    """Redis lost everything: the answer is still recorded, and its events are appended again."""
    harness = Harness(LONG)
    harness.target.how = taking(20)
    await harness.register()
    await harness.queue("e-1")
    async with harness.executor():
        await asked(harness)
        for place in (harness.log, harness.batch_registry, harness.tasks, harness.executor_registry):
            place.lose_everything()
        await until(lambda: harness.events("e-1"), timeout=60)
        await asyncio.sleep(30)
    assert await harness.story("e-1") == "provisioning running responded completed"


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


@virtually
async def test_an_executor_of_a_local_run_serves_only_that_run():
    """Neither another run's batch nor the fleet's: environment, folder and keys are the run's."""
    harness = Harness(settings=replace(SETTINGS, eligibility=Eligibility(run_id="run-1")))
    for name, run_id in (("own", "run-1"), ("other", "run-2"), ("shared", "")):
        await harness.register(name, run_id=run_id)
        await harness.queue(f"e-{name}", batch_id=name)
    async with harness.executor():
        await until(lambda: harness.is_drained("own"))
        await asyncio.sleep(10)
    assert await counts(harness, "other") == await counts(harness, "shared") == QueueCounts(ready=1)


@virtually
async def test_an_executor_of_the_fleet_serves_no_local_run():
    """Only the executors that a local run has started serve it."""
    harness = Harness()
    await harness.register("local", run_id="run-1")
    await harness.register("shared")
    await harness.queue("e-1", batch_id="local")
    await harness.queue("e-2", batch_id="shared")
    async with harness.executor():
        await until(lambda: harness.is_drained("shared"))
        await asyncio.sleep(10)
    assert await counts(harness, "local") == QueueCounts(ready=1)


@virtually
async def test_a_batch_is_served_where_all_its_labels_are_declared():
    """One label of two is not enough, and labels that nothing requires do no harm."""
    harness = Harness(settings=replace(SETTINGS, eligibility=Eligibility(labels=frozenset({"gpu", "ssd"}))))
    await harness.register("both", requires=("gpu", "region=eu"))
    await harness.register("one", requires=("gpu",))
    await harness.queue("e-1", batch_id="both")
    await harness.queue("e-2", batch_id="one")
    async with harness.executor():
        await until(lambda: harness.is_drained("one"))
        await asyncio.sleep(10)
    assert await counts(harness, "both") == QueueCounts(ready=1)
