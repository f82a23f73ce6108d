"""The task queue, the batch registry and the executor registry in one process, for tests and the simulator.

They implement the same contracts as the classes on Redis. The clock is passed in and measures idle time and
TTLs; `consume` blocks on the event loop, so both may be virtual.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import count, islice

from typing_extensions import override

from taskqueue.batch_registry import BatchEntry, BatchRegistry
from taskqueue.executor_registry import INSTANCE_TTL, ExecutorInstance, ExecutorRegistry
from taskqueue.queue_layout import DEFAULT_PARTITION, queue_name
from taskqueue.tasks import Delivery, QueueCounts, Task, TaskQueue

Clock = Callable[[], float]
"""Seconds since 1970."""


@dataclass(slots=True)
class _Message:
    id: int
    task: Task
    consumer: str = ""
    taken_at: float = 0.0
    deliveries: int = 0


@dataclass(slots=True)
class _Queue:
    """The tasks of one queue."""

    ready: deque[_Message] = field(default_factory=deque)
    owned: dict[str, _Message] = field(default_factory=dict)


class MemoryTaskQueue(TaskQueue):
    """`TaskQueue` in this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ids = count(1)
        self._changed = asyncio.Event()
        self.lose_everything()

    def lose_everything(self) -> None:
        """Lose all data, as a Redis that was flushed."""
        self._queues: dict[str, _Queue] = defaultdict(_Queue)

    @override
    async def enqueue(self, queue: str, task: Task) -> str:
        return self._add(queue, task)

    @override
    async def enqueue_batch(self, queue: str, tasks: Sequence[Task]) -> list[str]:
        return [self._add(queue, task) for task in tasks]

    def _add(self, queue: str, task: Task) -> str:
        number = next(self._ids)
        self._queues[queue].ready.append(_Message(number, task))
        self._changed.set()
        self._changed = asyncio.Event()
        return str(number)

    async def consume(
        self, consumer: str, wanted: Mapping[str, int], *, block: timedelta
    ) -> list[Delivery]:
        """Take up to `wanted` tasks of each queue; waits at most `block` for the first of them."""
        await asyncio.sleep(0)  # a consumer in a tight loop must not starve the event loop
        loop = asyncio.get_running_loop()
        deadline = loop.time() + block.total_seconds()
        wanted = {queue: limit for queue, limit in wanted.items() if limit > 0}
        while True:
            deliveries = [one for item in wanted.items() for one in self._take(consumer, *item)]
            left = deadline - loop.time()
            if deliveries or not wanted or left <= 0:
                return deliveries
            await self._change(left)

    def _take(self, consumer: str, name: str, limit: int) -> Iterator[Delivery]:
        ready = self._find(name).ready
        for _ in range(min(limit, len(ready))):
            yield self._deliver(name, ready.popleft(), consumer)

    def _find(self, name: str) -> _Queue:
        return self._queues.get(name) or _Queue()

    def _deliver(self, name: str, message: _Message, consumer: str) -> Delivery:
        before, message.consumer, message.taken_at = message.consumer, consumer, self._clock()
        message.deliveries += 1
        self._queues[name].owned[str(message.id)] = message
        return Delivery(name, str(message.id), message.task, message.deliveries, before)

    async def _change(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def claim_stalled(
        self, consumer: str, queues: Sequence[str], *, idle: timedelta, limit: int
    ) -> list[Delivery]:
        """Claim tasks whose consumer has neither acked nor extended them for `idle`."""
        stalled = self._idle_since(queues, self._clock() - idle.total_seconds())
        return [self._deliver(*each, consumer) for each in list(islice(stalled, limit))]

    def _idle_since(self, queues: Sequence[str], moment: float) -> Iterator[tuple[str, _Message]]:
        for name in queues:
            for message in sorted(self._find(name).owned.values(), key=lambda each: each.id):
                if message.taken_at <= moment:
                    yield name, message

    @override
    async def ack(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        return sum(self._remove(consumer, each) for each in deliveries)

    def _owned(self, consumer: str, delivery: Delivery) -> _Message | None:
        message = self._find(delivery.queue).owned.get(delivery.id)
        return message if message and message.consumer == consumer else None

    def _remove(self, consumer: str, delivery: Delivery) -> bool:
        is_owned = self._owned(consumer, delivery) is not None
        if is_owned:
            del self._queues[delivery.queue].owned[delivery.id]
        return is_owned

    @override
    async def nack(self, consumer: str, delivery: Delivery) -> bool:
        is_owned = self._remove(consumer, delivery)
        if is_owned:
            self._add(delivery.queue, delivery.task)
        return is_owned

    async def dead_letter(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        """Remove tasks whose evaluation failed; returns how many this consumer still owned."""
        return sum(self._remove(consumer, each) for each in deliveries)

    @override
    async def extend(self, consumer: str, deliveries: Sequence[Delivery]) -> list[Delivery]:
        owned = [(each, message) for each in deliveries if (message := self._owned(consumer, each))]
        for _, message in owned:
            message.taken_at = self._clock()
        return [delivery for delivery, _ in owned]

    @override
    async def counts(self, queues: Sequence[str]) -> list[QueueCounts]:
        return [QueueCounts(len(each.ready), len(each.owned)) for each in map(self._find, queues)]

    @override
    async def delete(self, batch_id: str, partitions: Sequence[str] = (DEFAULT_PARTITION,)) -> None:
        for partition in partitions:
            self._queues.pop(queue_name(batch_id, partition), None)


class MemoryBatchRegistry(BatchRegistry):
    """`BatchRegistry` in this process."""

    def __init__(self) -> None:
        self.lose_everything()

    def lose_everything(self) -> None:
        """Lose all data, as a Redis that was flushed."""
        self._entries: dict[str, tuple[BatchEntry, bytes]] = {}
        self._contexts: dict[str, dict[str, bytes]] = {}
        self._lanes: dict[str, dict[str, tuple[str, ...]]] = {}

    @override
    async def upsert(self, entry: BatchEntry, spec: bytes) -> None:
        self._entries[entry.batch_id] = entry, spec

    @override
    async def list(self) -> Sequence[BatchEntry]:
        return [entry for entry, _ in self._entries.values()]

    @override
    async def spec(self, batch_id: str) -> bytes | None:
        return self._entries[batch_id][1] if batch_id in self._entries else None

    @override
    async def unregister(self, batch_id: str) -> None:
        self._entries.pop(batch_id, None)
        self._contexts.pop(batch_id, None)
        self._lanes.pop(batch_id, None)

    @override
    async def put_contexts(self, batch_id: str, contexts: Mapping[str, bytes]) -> None:
        self._contexts.setdefault(batch_id, {}).update(contexts)

    @override
    async def contexts(self, batch_id: str, evaluation_ids: Sequence[str]) -> Sequence[bytes | None]:
        stored = self._contexts.get(batch_id, {})
        return [stored.get(evaluation_id) for evaluation_id in evaluation_ids]

    async def set_lanes(self, batch_id: str, lanes: Mapping[str, Sequence[str]]) -> None:
        """Record which lanes each partition of a batch needs permits of."""
        if lanes:
            named = {partition: tuple(names) for partition, names in lanes.items()}
            self._lanes[batch_id] = self._lanes.get(batch_id, {}) | named

    @override
    async def lanes(self, batch_id: str) -> Mapping[str, tuple[str, ...]]:
        return self._lanes.get(batch_id, {})


class MemoryExecutorRegistry(ExecutorRegistry):
    """`ExecutorRegistry` in this process."""

    def __init__(self, clock: Clock, *, lifetime: timedelta = INSTANCE_TTL) -> None:
        self._clock = clock
        self._lifetime = lifetime.total_seconds()
        self.lose_everything()

    def lose_everything(self) -> None:
        """Lose all data, as a Redis that was flushed."""
        self._heartbeats: dict[str, tuple[float, ExecutorInstance]] = {}

    @override
    async def heartbeat(self, instance: ExecutorInstance) -> None:
        self._heartbeats[instance.instance_id] = self._clock() + self._lifetime, instance

    @override
    async def deregister(self, instance_id: str) -> None:
        self._heartbeats.pop(instance_id, None)

    @override
    async def filter_live(self, instance_ids: Iterable[str]) -> set[str]:
        return {instance.instance_id for instance in self._alive()} & set(instance_ids)

    @override
    async def live(self) -> list[ExecutorInstance]:
        return self._alive()

    def _alive(self) -> list[ExecutorInstance]:
        now = self._clock()
        self._heartbeats = {name: beat for name, beat in self._heartbeats.items() if now < beat[0]}
        return [instance for _, instance in self._heartbeats.values()]
