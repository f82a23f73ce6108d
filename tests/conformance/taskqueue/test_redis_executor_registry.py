"""The executor registry on a real Redis."""

from datetime import timedelta

from taskqueue import keys
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from tests.waiting import until

MOMENT = timedelta(milliseconds=50)


async def test_a_heartbeat_expires_by_itself(redis_queues):
    """Redis deletes the expired heartbeat, and the next heartbeat of any executor cleans the index."""
    executor_registry = RedisExecutorRegistry(redis_queues.redis, lifetime=MOMENT)
    await executor_registry.heartbeat(ExecutorInstance("alice-1", "alice"))

    async def is_dead():
        return not await executor_registry.filter_live(["alice-1"])

    await until(is_dead)
    assert await executor_registry.live() == []
    await executor_registry.heartbeat(ExecutorInstance("bob-1", "bob"))
    assert await redis_queues.redis.zrange(keys.EXECUTORS, 0, -1) == [b"bob-1"]
