"""Coordinator processes on real servers: one leads, and a standby takes over."""

import asyncio

from coordinator import app
from coordinator.metrics import GAUGES
from tests.integration.coordinator.coordinating import house, observer_of
from tests.waiting import until


async def test_only_the_leader_exports_gauges_of_batches(redis_url, postgres_url):
    """The standby reports itself as one until the leader is gone, which then exports nothing."""
    async with house(redis_url, postgres_url) as here:
        await here.submit("nightly", 1)
        stops, observers = [asyncio.Event(), asyncio.Event()], [observer_of(here), observer_of(here)]

        async def run(number: int) -> None:
            with GAUGES.registered(observers[number].view):
                await app._until_stopped(here.another(), observers[number], here.pool, stops[number])

        def seen(number: int) -> tuple[bool, bool]:
            view = observers[number].view
            return view.is_leading, view.overview is not None

        first = asyncio.create_task(run(0))
        await until(lambda: seen(0) == (True, True))
        second = asyncio.create_task(run(1))
        await until(lambda: observers[1].view.dependencies.up)
        assert seen(1) == (False, False)
        stops[0].set()
        await first
        assert seen(0) == (False, False)
        await until(lambda: seen(1) == (True, True))
        stops[1].set()
        await second
        for observer in observers:
            assert observer.view.dependencies.up == {"redis": 1, "postgres": 1}
