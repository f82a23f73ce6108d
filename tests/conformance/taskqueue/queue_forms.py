"""The implementations of the task queue, with what a test can see and do beyond the contract."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from redis.exceptions import ResponseError

from eventlog.redis_streams import connect
from taskqueue import keys
from taskqueue.batch_registry import BatchRegistry
from taskqueue.executor_registry import ExecutorRegistry
from taskqueue.memory import MemoryBatchRegistry, MemoryExecutorRegistry, MemoryTaskQueue
from taskqueue.redis_batch_registry import RedisBatchRegistry
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.redis_streams import RedisTaskQueue
from taskqueue.tasks import Delivery, Task, TaskQueue

BATCH, OTHER = "batch-1", "batch-2"
NOW = timedelta(0)
LATER = timedelta(hours=1)
SOON = timedelta(minutes=1)


class QueueForm(Protocol):
    """One implementation under test."""

    @property
    def tasks(self) -> TaskQueue:
        """The queue."""
        ...

    @property
    def batch_registry(self) -> BatchRegistry:
        """The batch registry beside it."""
        ...

    @property
    def executor_registry(self) -> ExecutorRegistry:
        """The executor registry beside it."""
        ...

    async def pass_time(self, span: timedelta) -> None:
        """Advance its clock by this time."""
        ...

    async def has_waiting_consumer(self) -> bool:
        """Return whether a consumer is blocked."""
        ...

    async def lose_everything(self) -> None:
        """Lose all data, as a flushed Redis does."""
        ...

    async def left_behind(self) -> set[str]:
        """List the keys that are left, of any batch."""
        ...

    async def aclose(self) -> None:
        """Close its connections."""
        ...


@dataclass
class Clock:
    """A clock that moves only when the test advances it."""

    seconds: float = 1_700_000_000.0

    def __call__(self) -> float:
        return self.seconds


@dataclass
class MemoryQueueForm:
    clock: Clock = field(default_factory=Clock)

    def __post_init__(self) -> None:
        self.tasks = MemoryTaskQueue(self.clock)
        self.batch_registry = MemoryBatchRegistry()
        self.executor_registry = MemoryExecutorRegistry(self.clock)

    async def pass_time(self, span: timedelta) -> None:
        self.clock.seconds += span.total_seconds()

    async def has_waiting_consumer(self) -> bool:
        return bool(self.tasks._changed._waiters)

    async def lose_everything(self) -> None:
        for each in (self.tasks, self.batch_registry, self.executor_registry):
            each.lose_everything()

    async def left_behind(self) -> set[str]:
        return {
            *self.tasks._queues,
            *self.batch_registry._entries,
            *self.batch_registry._contexts,
            *self.batch_registry._lanes,
        }

    async def aclose(self) -> None: ...


class RedisQueueForm:
    def __init__(self, url: str) -> None:
        self.redis = connect(url)
        self.tasks = RedisTaskQueue(self.redis)
        self.batch_registry = RedisBatchRegistry(self.redis)
        self.executor_registry = RedisExecutorRegistry(self.redis)

    async def pass_time(self, span: timedelta) -> None:
        """Change the times that the server has stored, since its clock cannot be moved."""
        milliseconds = span // timedelta(milliseconds=1)
        for name in await self.left_behind():
            kind: Any = await self.redis.type(name)
            if kind == b"stream":
                await self._make_idle(name, milliseconds)
            elif kind == b"zset":
                await self._make_older(name, milliseconds)
            if (left := await self.redis.pttl(name)) > 0:
                await self.redis.pexpire(name, left - milliseconds)

    async def _make_idle(self, stream: str, milliseconds: int) -> None:
        with suppress(ResponseError):  # a stream that was never read has no group
            pending: Any = await self.redis.xpending_range(stream, keys.GROUP, "-", "+", 1_000)
            for entry in pending:
                holder, message = entry["consumer"], [entry["message_id"]]
                idle = entry["time_since_delivered"] + milliseconds
                await self.redis.xclaim(stream, keys.GROUP, holder, 0, message, idle=idle, justid=True)

    async def _make_older(self, scores: str, milliseconds: int) -> None:
        age = milliseconds / 1_000 if scores == keys.EXECUTORS else milliseconds
        members: Any = await self.redis.zrange(scores, 0, -1)
        for member in members:
            await self.redis.zincrby(scores, -age, member)

    async def has_waiting_consumer(self) -> bool:
        return bool((await self.redis.info("clients"))["blocked_clients"])

    async def lose_everything(self) -> None:
        await self.redis.flushall()

    async def left_behind(self) -> set[str]:
        names: Any = await self.redis.keys("*")
        return {name.decode() for name in names}

    async def aclose(self) -> None:
        await self.redis.aclose()


def task(number: int, *, attempt: int = 1) -> Task:
    """Make a task from its number."""
    return Task(f"evaluation:{number}", attempt)


async def put(form: QueueForm, *numbers: int, batch: str = BATCH) -> None:
    """Enqueue the tasks of these numbers."""
    await form.tasks.enqueue_batch(batch, [task(number) for number in numbers])


async def take(
    form: QueueForm, consumer: str = "a", limit: int = 10, *, batch: str = BATCH
) -> list[Delivery]:
    """Take the tasks that are ready."""
    return await form.tasks.consume(consumer, {batch: limit}, block=NOW)


def numbers(deliveries: list[Delivery]) -> list[int]:
    """Return the numbers of the delivered tasks, in order."""
    return [int(each.task.evaluation_id.partition(":")[2]) for each in deliveries]
