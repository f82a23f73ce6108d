"""Coordinator processes on real servers: one leads, and a standby takes over."""

import asyncio
from datetime import timedelta

from coordinator import app, telemetry
from coordinator.app import cycle_interval
from coordinator.metrics import GAUGES
from coordinator.settings import CoordinatorSettings
from eventlog.log import LogUnavailable
from tests.integration.coordinator.coordinating import house, observer_of
from tests.waiting import until


async def test_only_the_leader_exports_gauges_of_batches(redis_url, postgres_url, monkeypatch):
    """The standby reports itself as one until the leader is gone, which then exports nothing."""
    monkeypatch.setattr(telemetry, "is_wired", lambda: True)
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


async def test_each_outage_of_a_leader_and_its_end_are_logged_once(
    redis_url, postgres_url, monkeypatch, caplog
):
    """A leader that has recovered logs the next outage as well."""
    caplog.set_level("INFO", "eventlog.outage")
    async with house(redis_url, postgres_url) as here:
        coordinator, stop = here.another(), asyncio.Event()
        outcomes = iter([LogUnavailable("a"), LogUnavailable("a"), None, LogUnavailable("b"), None])

        async def run_cycle() -> None:
            outcome = next(outcomes, stop)
            if isinstance(outcome, Exception):
                raise outcome
            if outcome is stop:
                stop.set()

        monkeypatch.setattr(coordinator, "run_cycle", run_cycle)
        await app._until_stopped(coordinator, observer_of(here), here.pool, stop)
    logged = [(record.message, getattr(record, "error", None)) for record in caplog.records]
    down, up = "Redis or Postgres unavailable: retrying", ("Redis or Postgres available again", None)
    assert logged == [(down, "a"), up, (down, "b"), up]


def test_cycles_follow_each_other_quickly_after_an_election() -> None:
    """A local run elects its coordinator for one batch, which may take less than a usual interval."""
    settings = CoordinatorSettings(cycle_interval=timedelta(milliseconds=250))
    assert [cycle_interval(settings, led=led) for led in (0.0, 1.0, 2.5, 60.0)] == [0.05, 0.1, 0.25, 0.25]
