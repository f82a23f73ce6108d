"""Executors in the status of a batch."""

from redis.asyncio import Redis

from taskqueue.executor_registry import ExecutorInstance
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from tests.integration.scoreline.batch_harness import Harness


async def test_executors_are_shown_with_their_busy_slots(here: Harness, redis_url: str) -> None:
    """Executors of other projects do not count; an unreachable Redis is reported."""
    await here.submit("nightly", ["queued"])
    async with Redis.from_url(redis_url) as redis:
        executor_registry = RedisExecutorRegistry(redis)
        await executor_registry.heartbeat(
            ExecutorInstance("i-1", "elsewhere", slots=4, busy=1, project="other")
        )
        text = (await here.run("status", "nightly")).stdout
        assert "No executor takes tasks of project default; 1 work for others." in text
        await executor_registry.heartbeat(ExecutorInstance("i-2", "here", slots=4, busy=3))
    assert "1 executor (here), 3/4 slots busy" in (await here.run("status", "nightly")).stdout
    ran = await here.run("status", "nightly", EVAL_REDIS_URL="redis://127.0.0.1:1")
    assert ran.exit_code == 0
    assert "executors not known" in ran.stdout
    assert "does not answer (connection refused)" in ran.stdout
