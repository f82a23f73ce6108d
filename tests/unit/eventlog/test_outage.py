"""Outages of servers: logged once, and ended by the loop that failed."""

import asyncio

from eventlog.outage import Outage, OutageBackoff
from tests.unit.executor.harness import virtually


@virtually
async def test_only_a_loop_that_failed_ends_the_outage(caplog):
    """A call of another loop may have been answered before the outage began."""
    caplog.set_level("INFO", "eventlog.outage")
    outage = Outage("task queue")
    fetching, acking = OutageBackoff(outage), OutageBackoff(outage)
    await fetching.wait(ConnectionError("refused"))
    acking.succeeded()
    went_on = outage.is_under_way
    fetching.succeeded()
    assert (went_on, outage.is_under_way) == (True, False)
    fetching.succeeded()
    assert [record.message for record in caplog.records] == [
        "task queue unavailable: retrying",
        "task queue available again",
    ]


@virtually
async def test_the_backoff_grows_to_its_limit_and_starts_again_after_a_success():
    """Each wait is at least half of its nominal duration."""
    clock = asyncio.get_running_loop().time
    backoff = OutageBackoff(Outage("task queue"), longest=1.0)

    async def waited() -> float:
        before = clock()
        await backoff.wait(ConnectionError())
        return clock() - before

    durations = [await waited() for _ in range(8)]
    assert durations[0] <= 0.05
    assert all(0.5 <= each <= 1.0 for each in durations[5:])
    backoff.succeeded()
    assert await waited() <= 0.05
