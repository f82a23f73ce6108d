"""Task queue backends by name, and the errors for names that are none."""

import pytest

from eventlog.redis_streams import connect
from taskqueue.backends import (
    BackendNotHere,
    BadBackend,
    OneProcessOnly,
    UnknownBackend,
    choose,
    open_queues,
)
from taskqueue.memory import MemoryBatchRegistry, MemoryExecutorRegistry, MemoryTaskQueue
from taskqueue.redis_batch_registry import RedisBatchRegistry
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.redis_streams import RedisTaskQueue


@pytest.mark.parametrize(
    ("name", "kinds"),
    [
        ("redis", (RedisTaskQueue, RedisBatchRegistry, RedisExecutorRegistry)),
        ("memory", (MemoryTaskQueue, MemoryBatchRegistry, MemoryExecutorRegistry)),
    ],
)
def test_a_name_opens_all_three_parts_of_a_backend(name, kinds):
    """Queue, batch registry and executor registry are always of the same backend."""
    queues = open_queues(choose(name, fleet=False), connect("redis://127.0.0.1:1/0"))
    assert tuple(map(type, (queues.tasks, queues.batch_registry, queues.executor_registry))) == kinds


def test_a_fleet_can_not_share_memory():
    """The error has the reason, and what to use instead."""
    with pytest.raises(OneProcessOnly, match=r"EVAL_QUEUE_BACKEND=memory: .*one process.*use redis"):
        choose("memory", fleet=True)
    assert choose("redis", fleet=True) == "redis"


@pytest.mark.parametrize(
    ("name", "nearest"), [("reddis", "redis"), ("Redis", "redis"), ("azure", "azure_sb"), ("kafka", None)]
)
def test_an_unknown_name_is_refused_with_the_known_ones(name, nearest):
    """The error suggests the nearest name, if one is near."""
    with pytest.raises(UnknownBackend, match="there are redis and memory") as caught:
        choose(name, fleet=False)
    assert (caught.value.name, caught.value.nearest) == (name, nearest)
    assert str(caught.value).endswith(f"Did you mean {nearest}?" if nearest else "memory.")


def test_a_known_backend_that_is_not_available_is_reported_as_such():
    """The error does not suggest that the name is misspelt."""
    with pytest.raises(BackendNotHere, match=r"azure_sb: this backend is known, but not available here"):
        choose("azure_sb", fleet=True)
    assert issubclass(BackendNotHere, BadBackend)
