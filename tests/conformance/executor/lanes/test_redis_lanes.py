"""Lanes on a real Redis, used by executors whose clocks differ."""

import time

import pytest

from eventlog.redis_streams import connect
from executor.lanes.contract import AcquireRequest, LanePolicy
from executor.lanes.redis_lanes import RedisLanes


async def test_clocks_that_differ_share_one_rate(redis_url: str, monkeypatch: pytest.MonkeyPatch):
    """Executors whose clocks differ by an hour share one rate: the server's clock decides."""
    async with connect(redis_url) as redis:
        lanes, policy = RedisLanes(redis), LanePolicy(rpm=6)
        grants = []
        for number, skew in enumerate((0, 3_600, -3_600)):
            monkeypatch.setattr(time, "time", lambda skew=skew: 1_700_000_000.0 + skew)
            ask = AcquireRequest("shared", f"executor-{number}", 0, 10, 100.0, policy)
            grants.append((await lanes.acquire([ask]))[0])
        (seconds, _), [view] = await redis.time(), await lanes.views(["shared"])
    assert sum(grant.granted for grant in grants) <= 1
    assert view.until == pytest.approx(seconds, abs=120)
