"""Health checks of workers and coordinators on real servers."""

from datetime import timedelta
from typing import Any

import pytest
from psycopg import AsyncConnection
from redis.asyncio import Redis

from projections.leader_election.advisory_lock import coordinator_lock
from scoreline.command_error import CommandError
from scoreline.reports import checks
from scoreline.reports.checks import check_leader, check_worker
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.redis_executor_registry import RedisExecutorRegistry

LOCK = coordinator_lock("")


async def test_a_worker_is_alive_by_its_name(redis_url: str) -> None:
    """Another worker's heartbeat does not count for it."""
    async with Redis.from_url(redis_url) as redis:
        await RedisExecutorRegistry(redis).heartbeat(ExecutorInstance("i-1", "one", slots=4, busy=3))
    assert await check_worker(redis_url, "one") == "worker one is alive, 3 of 4 slots busy"
    with pytest.raises(CommandError, match=r"No worker named two is alive\. .* scoreline worker start"):
        await check_worker(redis_url, "two")


async def test_a_coordinator_leads_while_it_holds_the_lock(
    postgres_url: str, conn: AsyncConnection[Any]
) -> None:
    """The lock of a local run is another one."""
    with pytest.raises(CommandError, match=r"No coordinator leads\. .* scoreline coordinator start"):
        await check_leader(postgres_url, LOCK)
    await conn.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    assert (await check_leader(postgres_url, LOCK)).startswith("a coordinator leads, last active ")
    with pytest.raises(CommandError, match="No coordinator leads"):
        await check_leader(postgres_url, coordinator_lock("run-1"))


async def test_a_leader_that_is_silent_for_too_long_is_unhealthy(
    postgres_url: str, conn: AsyncConnection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The message has the age of its last activity."""
    monkeypatch.setattr(checks, "QUIET", timedelta(days=-1))
    await conn.execute("SELECT pg_advisory_lock(%s)", [LOCK])
    with pytest.raises(CommandError, match=r"The leading coordinator has been silent for -?\d+ s"):
        await check_leader(postgres_url, LOCK)
