"""Metrics of lanes."""

import asyncio
from typing import Any

import pytest

from domain.batch_spec import BatchSpec
from executor.contract import RateLimited
from executor.lanes.contract import BlockedBy, Grant, LanePolicy, LanesUnavailable, LaneView
from executor.lanes.memory import MemoryLanes
from executor.lanes.permits import LaneUse
from executor.lanes.telemetry import LaneMetrics, LaneMonitor
from tests.telemetry import measuring
from tests.unit.executor.harness import (
    Harness,
    raising,
    virtually,
)
from tests.unit.executor.measured import METERED, is_done
from tests.waiting import until


def test_grants_refusals_and_waits_of_a_lane_are_counted():
    """The wait is from the first refusal to the next permit."""
    metrics = LaneMetrics()
    with measuring() as measured:
        metrics.record("slow", Grant(3), 1.0)
        metrics.record("slow", Grant(0, blocked_by=BlockedBy.TOKENS, ready_in=1.0), 2.0)
        metrics.record("slow", Grant(0, blocked_by=BlockedBy.TOKENS, ready_in=1.0), 3.0)
        metrics.record("slow", Grant(1), 4.5)
        metrics.throttled("slow")
    assert measured["eval_rate_limit_acquired_total", "slow"] == 4
    assert measured["eval_rate_limit_refused_total", "slow", "tokens"] == 2
    assert measured["eval_rate_limit_throttled_total", "slow"] == 1
    assert measured.sum("eval_rate_limit_wait_ms", "slow") == pytest.approx(2_500)
    assert metrics.waited("slow") == pytest.approx(2.5)


@virtually
async def test_the_lanes_of_an_executor_are_counted():
    """Permits, and throttled calls."""
    harness = Harness(BatchSpec("batch", (METERED,)))
    harness.lanes = MemoryLanes(harness.clock)
    harness.uses = {"model": LaneUse("shared", LanePolicy(rpm=6_000))}
    harness.target.how = raising(RateLimited("slower"))
    await harness.register()
    with measuring() as measured:
        await harness.queue("e-1")
        async with harness.executor():
            await until(lambda: is_done(harness), timeout=86_400)
    assert measured["eval_rate_limit_acquired_total", "shared"] >= 1
    assert measured["eval_rate_limit_throttled_total", "shared"] == 1


class Views:
    """Lanes with scripted views that count their reads."""

    def __init__(self, *views: LaneView) -> None:
        self.scripted = list(views)
        self.asked = 0

    async def acquire(self, _requests: Any) -> list[Grant]:
        return []

    async def views(self, _lanes: Any) -> list[LaneView]:
        self.asked += 1
        if not self.scripted:
            raise LanesUnavailable("away")
        return self.scripted


async def test_lanes_are_read_only_while_metrics_are_collected():
    """Without a collection there is no read; an unreachable lane reports nothing."""
    lanes = Views(
        LaneView("a", blocked_by=BlockedBy.BREAKER, rpm=60.0, in_flight=2, concurrency=8.5, breaker="open")
    )
    monitor = LaneMonitor(lanes, lambda: ["a"])
    await monitor.poll()
    assert lanes.asked == 0
    with measuring() as measured:
        assert monitor.read() == ()
    running = asyncio.create_task(monitor.run())
    try:
        await until(lambda: monitor.views)
        now = measured.look()
        assert now.gauge("eval_lane_open", "a") == 0
        assert now.gauge("eval_lane_in_flight", "a") == 2
        assert now.gauge("eval_lane_concurrency_limit", "a") == 8.5
        assert now.gauge("eval_lane_rpm_limit", "a") == 60
        assert now.gauge("eval_lane_tpm_limit", "a") is None
        assert now.gauge("eval_lane_breaker_state", "a") == 2
        lanes.scripted = [LaneView("a", blocked_by=BlockedBy.RATE)]
        await monitor.poll()
        assert measured.look().gauge("eval_lane_open", "a") == 1  # it paces, and lets calls through
        lanes.scripted = []
        await monitor.poll()
        assert measured.look().gauge("eval_lane_open", "a") is None
    finally:
        running.cancel()
