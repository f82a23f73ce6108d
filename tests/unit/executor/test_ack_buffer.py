"""The ack buffer: acks wait for the log, are sent in batches, and survive outages."""

import asyncio

from eventlog import payloads as p
from eventlog.log import LogUnavailable
from executor.contract import TargetReply
from taskqueue.tasks import QueueCounts
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
