"""The batches that an executor may serve, as the registry lists them."""

import asyncio
from dataclasses import replace

from domain.eligibility import Eligibility
from eventlog import payloads as p
from taskqueue.batch_registry import BatchState
from taskqueue.tasks import QueueCounts
from tests.builders import BATCH
from tests.unit.executor.harness import SETTINGS, Harness, hang, judged_by, virtually
from tests.unit.executor.steps import LONG, asked, counts, taking
from tests.waiting import until


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
