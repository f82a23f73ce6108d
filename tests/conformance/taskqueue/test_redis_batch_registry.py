"""The batch registry on a real Redis."""

from taskqueue import keys
from taskqueue.batch_registry import BatchEntry
from taskqueue.executor_registry import ExecutorInstance
from tests.conformance.taskqueue.queue_forms import BATCH, OTHER


async def test_an_invalid_batch_entry_hides_no_other(redis_queues, caplog):
    """Entries and heartbeats that cannot be decoded are logged, and the others are listed."""
    alice = ExecutorInstance("alice-1", "alice")
    await redis_queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    await redis_queues.redis.hset(keys.BATCHES, OTHER, b"garbage")
    await redis_queues.executor_registry.heartbeat(alice)
    await redis_queues.executor_registry.heartbeat(ExecutorInstance("bob-1", "bob"))
    await redis_queues.redis.set(keys.executor_key("bob-1"), b"garbage")
    assert await redis_queues.batch_registry.list() == [BatchEntry(BATCH)]
    assert await redis_queues.executor_registry.live() == [alice]
    assert len(caplog.records) == 2
