"""The backends of the task queue, selected by `EVAL_QUEUE_BACKEND`."""

import time
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from redis.asyncio import Redis

from taskqueue.batch_registry import BatchRegistry
from taskqueue.executor_registry import ExecutorRegistry
from taskqueue.memory import MemoryBatchRegistry, MemoryExecutorRegistry, MemoryTaskQueue
from taskqueue.redis_batch_registry import RedisBatchRegistry
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.redis_streams import RedisTaskQueue
from taskqueue.tasks import TaskQueue

VARIABLE = "EVAL_QUEUE_BACKEND"


class Backend(StrEnum):
    """The available backends."""

    REDIS = "redis"
    MEMORY = "memory"


NOT_HERE = ("azure_sb",)
"""Backends of other systems that are not available here."""


class BadBackend(ValueError):  # noqa: N818 - the root of the three below
    """A backend that can't be used; the message names the fix."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{VARIABLE}={name}: {message}")
        self.name = name


class UnknownBackend(BadBackend):
    """There is no backend of this name."""

    def __init__(self, name: str) -> None:
        self.nearest = next(iter(get_close_matches(name.lower(), [*Backend, *NOT_HERE], n=1)), None)
        hint = f" Did you mean {self.nearest}?" if self.nearest else ""
        super().__init__(name, f"there is no such backend; there are {_known()}.{hint}")


class BackendNotHere(BadBackend):
    """The backend is known, but not available here."""

    def __init__(self, name: str) -> None:
        super().__init__(name, f"this backend is known, but not available here; use {Backend.REDIS}.")


class OneProcessOnly(BadBackend):
    """A fleet can't share a backend that lives inside one process."""

    def __init__(self, name: str) -> None:
        super().__init__(
            name,
            f"it lives inside one process, so workers can't share it; use {Backend.REDIS} for a fleet.",
        )


@dataclass(frozen=True, slots=True)
class Queues:
    """The queue and registries that executors and coordinators share."""

    tasks: TaskQueue
    batch_registry: BatchRegistry
    executor_registry: ExecutorRegistry


def choose(name: str, *, fleet: bool) -> Backend:
    """Return the backend of this name, for a fleet or for one process; raises `BadBackend`."""
    if name in NOT_HERE:
        raise BackendNotHere(name)
    if name not in set(Backend):
        raise UnknownBackend(name)
    if fleet and name == Backend.MEMORY:
        raise OneProcessOnly(name)
    return Backend(name)


def open_queues(backend: Backend, redis: Redis) -> Queues:
    """Open queue and registries on Redis, or new ones in this process."""
    match backend:
        case Backend.REDIS:
            return Queues(RedisTaskQueue(redis), RedisBatchRegistry(redis), RedisExecutorRegistry(redis))
        case Backend.MEMORY:
            return Queues(
                MemoryTaskQueue(time.time), MemoryBatchRegistry(), MemoryExecutorRegistry(time.time)
            )


def _known() -> str:
    return " and ".join(Backend)
