"""Outages of the task queue: logged once, and waited out by each loop."""

import asyncio
from dataclasses import replace
from datetime import timedelta

from eventlog import payloads as p
from executor.settings import Timings
from taskqueue.tasks import QueueCounts
from tests.unit.executor.harness import SETTINGS, Harness, virtually
from tests.unit.executor.steps import LONG, Flaky, asked, counts, taking
from tests.waiting import until


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
