"""The task queue on a real Redis: its keys, the server's clock and refused commands."""

from pathlib import Path

import pytest
from redis.exceptions import ResponseError

import taskqueue
from eventlog.redis_streams import connect
from taskqueue import keys
from taskqueue.batch_registry import BatchEntry
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.redis_batch_registry import RedisBatchRegistry
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.redis_streams import EMPTY_STREAM_TTL, RedisTaskQueue
from taskqueue.tasks import QueueCounts, QueueUnavailable
from tests.conformance.taskqueue.queue_forms import BATCH, NOW, numbers, put, take, task

TASKS = keys.tasks_key(BATCH)


async def test_keys_are_as_documented(redis_queues):
    """The names are public, and Redis has no other keys."""
    await put(redis_queues, 1, 2)
    await redis_queues.tasks.dead_letter("a", await take(redis_queues, "a", 1))
    await redis_queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    await redis_queues.batch_registry.put_contexts(BATCH, {"e": b"x"})
    await redis_queues.executor_registry.heartbeat(ExecutorInstance("alice-1", "alice"))
    of_the_batch = {f"eval:{kind}:{{batch-1}}" for kind in ("tasks", "batch", "context")}
    shared = {"eval:batches", "eval:executors", "eval:executor:alice-1"}
    assert await redis_queues.left_behind() == of_the_batch | shared
    ((_, fields),) = await redis_queues.redis.xrange(TASKS)
    assert fields == {b"id": b"evaluation:2", b"attempt": b"1"}


async def test_a_plain_client_can_enqueue_a_task(redis_queues):
    """One XADD is enough."""
    await redis_queues.redis.xadd(TASKS, {"id": "evaluation:9", "attempt": "2", "more": "ignored"})
    assert [each.task for each in await take(redis_queues)] == [task(9, attempt=2)]


@pytest.mark.parametrize(
    "fields", [{"x": "y"}, {"id": "e", "attempt": "one"}, {"id": b"\xff", "attempt": "1"}], ids=str
)
async def test_an_entry_that_is_no_task_is_dropped(redis_queues, fields, caplog):
    """It is logged and removed, and the tasks around it are delivered."""
    await put(redis_queues, 1)
    await redis_queues.redis.xadd(TASKS, fields)
    await put(redis_queues, 2)
    assert numbers(await take(redis_queues)) == [1, 2]
    assert await redis_queues.tasks.counts([BATCH]) == [QueueCounts(owned=2)]
    assert [record.batch_id for record in caplog.records] == [BATCH]


async def test_keys_of_earlier_versions_have_no_effect(redis_queues):
    """A stream of dead letters is deleted with its batch; delayed tasks were never written."""
    await redis_queues.redis.xadd("eval:dlq:{batch-1}", {"id": "e", "attempt": "1", "reason": "poison"})
    await put(redis_queues, 1)
    assert numbers(await take(redis_queues)) == [1]
    await redis_queues.tasks.delete(BATCH)
    assert await redis_queues.left_behind() == set()


async def test_waiting_leaves_no_key_for_good(redis_queues):
    """A stream created by waiting on a deleted batch expires, unless it is used."""
    await take(redis_queues)
    assert 0 < await redis_queues.redis.ttl(TASKS) <= EMPTY_STREAM_TTL.total_seconds()
    await put(redis_queues, 1)
    assert await redis_queues.redis.ttl(TASKS) == -1


async def test_many_tasks_take_one_call(redis_queues):
    """A thousand are enqueued, a hundred taken, extended and acked, each by one script call."""

    async def calls() -> int:
        stats = await redis_queues.redis.info("commandstats")
        return int(stats["cmdstat_evalsha"]["calls"])

    async def a_round(count: int) -> None:
        await put(redis_queues, *range(count))
        taken = await take(redis_queues, limit=count // 10)
        assert await redis_queues.tasks.extend("a", taken) == taken
        assert await redis_queues.tasks.ack("a", taken) == count // 10

    await a_round(10)
    before = await calls()
    await a_round(1_000)
    assert await calls() - before == 4


async def test_lost_scripts_are_loaded_again(redis_queues):
    """SCRIPT FLUSH, or a restart, costs one round trip."""
    await put(redis_queues, 1)
    await redis_queues.redis.script_flush()
    await put(redis_queues, 2)
    assert numbers(await take(redis_queues)) == [1, 2]


@pytest.mark.parametrize("arguments", [[], ["e"], ["e", "soon"], ["e", "1", "f", "-"]])
async def test_refused_arguments_write_nothing(redis_queues, arguments):
    """The script checks all arguments before it writes, since Lua does not roll back."""
    source = (Path(taskqueue.__file__).parent / "enqueue.lua").read_text()
    with pytest.raises(ResponseError, match="enqueue:"):
        await redis_queues.redis.eval(source, 1, TASKS, *arguments)
    assert await redis_queues.left_behind() == set()


async def test_a_full_redis_is_unavailable_and_loses_nothing(redis_queues):
    """Enqueue is refused, ack still works, and a task that cannot be nacked stays owned."""
    await put(redis_queues, 1, 2, 3)
    first, second, third = await take(redis_queues)
    await redis_queues.redis.config_set("maxmemory", "1")
    try:
        with pytest.raises(QueueUnavailable):
            await put(redis_queues, 4)
        with pytest.raises(QueueUnavailable):
            await redis_queues.tasks.nack("a", second)
        with pytest.raises(QueueUnavailable):
            await redis_queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
        assert await redis_queues.tasks.ack("a", [first]) == 1
        assert await redis_queues.tasks.dead_letter("a", [third]) == 1
    finally:
        await redis_queues.redis.config_set("maxmemory", "0")
    assert await redis_queues.tasks.extend("a", [first, second, third]) == [second]
    assert await redis_queues.tasks.counts([BATCH]) == [QueueCounts(owned=1)]


async def test_a_server_that_cannot_write_for_now_is_unavailable(redis_queues):
    """Its error reply is transient, so callers retry."""
    await redis_queues.redis.config_set("min-replicas-to-write", "1")
    try:
        with pytest.raises(QueueUnavailable, match=r"^NOREPLICAS"):
            await put(redis_queues, 1)
        with pytest.raises(QueueUnavailable, match=r"^NOREPLICAS"):
            await redis_queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    finally:
        await redis_queues.redis.config_set("min-replicas-to-write", "0")


async def test_an_unreachable_server_is_unavailable():
    """Every call raises `QueueUnavailable`."""
    redis = connect("redis://127.0.0.1:1/0")
    tasks, batch_registry, executor_registry = (
        RedisTaskQueue(redis),
        RedisBatchRegistry(redis),
        RedisExecutorRegistry(redis),
    )
    for call in (
        tasks.enqueue(BATCH, task(1)),
        tasks.consume("a", {BATCH: 1}, block=NOW),
        tasks.counts([BATCH]),
        tasks.delete(BATCH),
        batch_registry.upsert(BatchEntry(BATCH), b""),
        batch_registry.list(),
        executor_registry.heartbeat(ExecutorInstance("a", "a")),
        executor_registry.filter_live(["a"]),
    ):
        with pytest.raises(QueueUnavailable):
            await call
    await redis.aclose()


async def test_a_key_of_the_wrong_type_is_quarantined(redis_queues):
    """Whichever command finds it, the key is renamed, and the command succeeds."""
    redis, batch_registry, executor_registry = (
        redis_queues.redis,
        redis_queues.batch_registry,
        redis_queues.executor_registry,
    )
    instance = ExecutorInstance("a", "a")
    commands = {
        TASKS: (
            lambda: put(redis_queues, 1),
            lambda: take(redis_queues),
            lambda: redis_queues.tasks.counts([BATCH]),
            lambda: redis_queues.tasks.claim_stalled("a", [BATCH], idle=NOW, limit=1),
        ),
        keys.BATCHES: (lambda: batch_registry.upsert(BatchEntry(BATCH), b""), batch_registry.list),
        keys.spec_key(BATCH): (lambda: batch_registry.spec(BATCH),),
        keys.lanes_key(BATCH): (
            lambda: batch_registry.lanes(BATCH),
            lambda: batch_registry.set_lanes(BATCH, {"": ["l"]}),
        ),
        keys.contexts_key(BATCH): (lambda: batch_registry.contexts(BATCH, ["e"]),),
        keys.executor_key("a"): (executor_registry.live, lambda: executor_registry.filter_live(["a"])),
        keys.EXECUTORS: (lambda: executor_registry.heartbeat(instance), executor_registry.live),
    }
    await executor_registry.heartbeat(instance)
    for name, calls in commands.items():
        for command in calls:
            await redis.delete(name)
            await redis.lpush(name, "of another type")
            await command()
            kept = [key.decode() async for key in redis.scan_iter("eval:quarantine:*")]
            assert [key.split(":", 3)[3] for key in kept] == [name]
            await redis.delete(*kept)
