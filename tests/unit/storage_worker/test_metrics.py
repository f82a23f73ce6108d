"""Gauges of a storage worker."""

from datetime import timedelta

import pytest

from eventlog.log import LogUnavailable
from storage_worker.gaps import GapPolicy
from storage_worker.metrics import GAP_TTL, GAUGES, IDLE_SECONDS, POSTGRES, REDIS, StorageMetrics
from storage_worker.storage import Storage
from tests.builders import EVALUATION, FIRST_ARRIVAL_MS, history
from tests.storage_world import GAP_TIMEOUT, GAP_WARNING
from tests.telemetry import measuring
from tests.unit.storage_worker.measured import STRAIGHT


class Clock:
    """A clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_open_gaps_are_reported_until_they_are_closed(world):
    """The gauges show their number and the age of the oldest; a gap is logged once and bridged at last."""
    storage = world.storage()
    world.xadd(*[each for each in history(STRAIGHT) if each.sequence != 2])
    with GAUGES.registered(storage.metrics), measuring() as measured:
        await storage.store([EVALUATION])
        world.wait(GAP_WARNING)
        for _ in range(2):
            await storage.store([EVALUATION])
        measured.look()
        assert measured.gauge("eval_storage_gaps_open") == 1
        assert measured.gauge("eval_storage_gap_age_seconds") == pytest.approx(5, abs=1)
        world.wait(GAP_TIMEOUT)
        await storage.store([EVALUATION])
    assert measured.gauge("eval_storage_gaps_open") == 0
    assert measured.gauge("eval_storage_gap_age_seconds") == 0
    assert (measured["eval_storage_gaps_warned_total"], measured["eval_storage_gaps_bridged_total"]) == (
        1,
        1,
    )


async def test_a_gap_that_another_worker_has_closed_is_dropped(world):
    """This worker does not read the evaluation again, so the gap must not be reported for ever."""
    clock = Clock()
    storage = Storage(world.log, world.tables, GapPolicy(GAP_TIMEOUT, GAP_WARNING), clock=clock)
    world.xadd(*history("queued"), *history("running", first=2))
    await storage.store([EVALUATION])
    assert len(storage.metrics.open_gaps()) == 1
    clock.now += GAP_TTL + 1
    assert storage.metrics.open_gaps() == []


def test_the_lag_is_the_age_of_the_oldest_wake_up_in_process():
    """It grows during processing, falls back to its value at the read, and is zero when idle."""
    clock = Clock()
    metrics = StorageMetrics(clock, lambda: False)
    metrics.synchronize(FIRST_ARRIVAL_MS + 2_000)
    with metrics.processing([b"%d-0" % (FIRST_ARRIVAL_MS + 500), b"%d-7" % FIRST_ARRIVAL_MS]):
        assert metrics.lag() == 2
        clock.now += 3
        assert metrics.lag() == 5
    assert metrics.lag() == 2
    clock.now += IDLE_SECONDS
    assert metrics.lag() == 0


async def test_a_server_that_does_not_respond_is_reported(world):
    """The gauge is down until the server responds again."""

    class UnavailableOnce:
        """A log that is unavailable once."""

        def __init__(self) -> None:
            self.seen: list[float | None] = []

        def __getattr__(self, name):
            return getattr(world.log, name)

        async def now_ms(self):
            self.seen.append(measured.look().gauge("eval_dependency_up", REDIS))
            if len(self.seen) == 1:
                raise LogUnavailable("away")
            return await world.log.now_ms()

    storage = world.storage(log=(log := UnavailableOnce()))
    world.xadd(*history("queued"))
    with GAUGES.registered(storage.metrics), measuring() as measured:
        await storage.process([EVALUATION])
    assert log.seen == [None, 0]
    assert [measured.gauge("eval_dependency_up", name) for name in (REDIS, POSTGRES)] == [1, 1]


async def test_degraded_ordering_is_reported(world):
    """The gauge is 1 for a gap time-out of zero, and else 0."""
    for timeout, degraded in ((GAP_TIMEOUT, 0), (timedelta(0), 1)):
        storage = world.storage(gap_policy=GapPolicy(timeout, GAP_WARNING))
        with GAUGES.registered(storage.metrics), measuring() as measured:
            pass
        assert measured.gauge("eval_storage_degraded") == degraded
