"""Executors whose process has died are removed from the executor registry, and no others."""

import pytest

from scoreline.local.dead_executors import deregister_dead
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.memory import MemoryExecutorRegistry

DEAD = ExecutorInstance("b-0-aaaa", "b-0", "here", 42)


@pytest.mark.parametrize(
    "other",
    [
        ExecutorInstance("b-1-bbbb", "b-1", "here", 43),
        ExecutorInstance("b-0-cccc", "b-0", "there", 42),
        ExecutorInstance("x-0-dddd", "x-0", "here", 42),
        ExecutorInstance("bb-0-eeee", "bb-0", "here", 42),
    ],
    ids=["another process", "another host", "another fleet", "a fleet whose name begins alike"],
)
async def test_only_dead_executors_are_deregistered(other: ExecutorInstance) -> None:
    """A dead executor is removed before its heartbeat expires; live ones stay."""
    executor_registry = MemoryExecutorRegistry(lambda: 0.0)
    for instance in (DEAD, other):
        await executor_registry.heartbeat(instance)
    assert await deregister_dead(executor_registry, fleet="b", host="here", is_dead=(42).__eq__) == [
        DEAD.instance_id
    ]
    assert await executor_registry.live() == [other]
