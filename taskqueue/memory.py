"""The task queue, the batch registry and the executor registry in one process, for tests and the simulator.

They hold to the same contracts as the forms on Redis. The clock is passed in and measures delays, idle
time and lifetimes; how long `consume` blocks is up to the event loop, so both may be virtual.
"""

import asyncio
import heapq
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count, islice

from taskqueue.batch_registry import BatchEntry
from taskqueue.executor_registry import INSTANCE_TTL, ExecutorInstance
from taskqueue.queue_layout import DEFAULT_PARTITION, queue_name
from taskqueue.tasks import DEAD_LETTERS_KEPT, DEAD_LETTERS_STAY, Counts, DeadLetter, Delivery, Task

Clock = Callable[[], float]
"""Seconds since 1970."""

SHORTEST_WAIT = 0.001
"""What is due within less than this is waited for so long: rounding must not make a busy loop."""


@dataclass(slots=True)
class _Message:
    id: int
    task: Task
    consumer: str = ""
    taken_at: float = 0.0
    deliveries: int = 0


@dataclass(slots=True)
class _Line:
    """Where the tasks of one line are."""

    ready: deque[_Message] = field(default_factory=deque)
    delayed: list[tuple[float, int, Task]] = field(default_factory=list)
    held: dict[str, _Message] = field(default_factory=dict)


@dataclass(slots=True)
class _DeadLetters:
    letters: deque[DeadLetter] = field(default_factory=lambda: deque(maxlen=DEAD_LETTERS_KEPT))
    until: float = float("inf")


class MemoryTaskQueue:
    """`TaskQueue` in this process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ids = count(1)
        self._changed = asyncio.Event()
        self.lose_everything()

    def lose_everything(self) -> None:
        """Forget, as a Redis does that was flushed."""
        self._lines: dict[str, _Line] = defaultdict(_Line)
        self._dead: dict[str, _DeadLetters] = {}

    async def enqueue(self, queue: str, task: Task, *, delay: timedelta = timedelta(0)) -> str:
        """Add a task, to be handed out now or after a while; returns the id of its message."""
        return self._add(queue, task, delay)

    async def enqueue_batch(self, queue: str, tasks: Sequence[Task]) -> list[str]:
        """Add many tasks at once; returns the ids of their messages."""
        return [self._add(queue, task, timedelta(0)) for task in tasks]

    def _add(self, queue: str, task: Task, delay: timedelta) -> str:
        number = next(self._ids)
        waiting = self._lines[queue]
        if delay > timedelta(0):
            heapq.heappush(waiting.delayed, (self._clock() + delay.total_seconds(), number, task))
        else:
            waiting.ready.append(_Message(number, task))
        self._changed.set()
        self._changed = asyncio.Event()
        return str(number)

    async def consume(
        self, consumer: str, wanted: Mapping[str, int], *, block: timedelta
    ) -> list[Delivery]:
        """Take up to so many tasks of each line; waits at most `block` for the first of them."""
        await asyncio.sleep(0)  # whoever takes without end must not keep the loop for itself
        loop = asyncio.get_running_loop()
        deadline = loop.time() + block.total_seconds()
        wanted = {queue: limit for queue, limit in wanted.items() if limit > 0}
        while True:
            taken = [one for item in wanted.items() for one in self._take(consumer, *item)]
            left = deadline - loop.time()
            if taken or not wanted or left <= 0:
                return taken
            await self._change(min(left, max(self._until_due(wanted), SHORTEST_WAIT)))

    def _take(self, consumer: str, queue: str, limit: int) -> Iterator[Delivery]:
        waiting = self._promoted(queue)
        for _ in range(min(limit, len(waiting.ready))):
            yield self._hand_out(queue, waiting.ready.popleft(), consumer)

    def _hand_out(self, queue: str, message: _Message, consumer: str) -> Delivery:
        before, message.consumer, message.taken_at = message.consumer, consumer, self._clock()
        message.deliveries += 1
        self._lines[queue].held[str(message.id)] = message
        return Delivery(queue, str(message.id), message.task, message.deliveries, before)

    def _promoted(self, queue: str) -> _Line:
        """Look a line up, with all in it ready that is due."""
        waiting = self._lines.get(queue) or _Line()
        while waiting.delayed and waiting.delayed[0][0] <= self._clock():
            waiting.ready.append(_Message(next(self._ids), heapq.heappop(waiting.delayed)[2]))
        return waiting

    def _until_due(self, queues: Iterable[str]) -> float:
        heaps = [self._lines[queue].delayed for queue in queues if queue in self._lines]
        return min((heap[0][0] for heap in heaps if heap), default=float("inf")) - self._clock()

    async def _change(self, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await self._changed.wait()
        except TimeoutError:
            return

    async def take_over(
        self, consumer: str, queues: Sequence[str], *, idle: timedelta, limit: int
    ) -> list[Delivery]:
        """Take tasks whose consumer has neither finished nor extended them for so long."""
        left = self._left_since(queues, self._clock() - idle.total_seconds())
        return [self._hand_out(*each, consumer) for each in list(islice(left, limit))]

    def _left_since(self, queues: Sequence[str], moment: float) -> Iterator[tuple[str, _Message]]:
        for queue in queues:
            held = self._promoted(queue).held.values()
            for message in sorted(held, key=lambda each: each.id):
                if message.taken_at <= moment:
                    yield queue, message

    async def ack(self, consumer: str, deliveries: Sequence[Delivery]) -> int:
        """Let finished tasks go; returns how many of them this consumer still held."""
        return sum(self._let_go(consumer, each) for each in deliveries)

    def _held(self, consumer: str, delivery: Delivery) -> _Message | None:
        waiting = self._lines.get(delivery.queue)
        message = waiting and waiting.held.get(delivery.id)
        return message if message and message.consumer == consumer else None

    def _let_go(self, consumer: str, delivery: Delivery) -> bool:
        held = self._held(consumer, delivery) is not None
        if held:
            del self._lines[delivery.queue].held[delivery.id]
        return held

    async def requeue(self, consumer: str, delivery: Delivery, *, delay: timedelta = timedelta(0)) -> bool:
        """Give a task back, to be handed out again now or after a while; False if it was no longer held."""
        held = self._let_go(consumer, delivery)
        if held:
            self._add(delivery.queue, delivery.task, delay)
        return held

    async def dead_letter(self, consumer: str, delivery: Delivery, *, reason: str) -> bool:
        """Let a task go, and remember that it was given up; False if it was no longer held."""
        held = self._let_go(consumer, delivery)
        if held:
            dead = self._dead.setdefault(delivery.batch_id, _DeadLetters())
            given_up_at = datetime.fromtimestamp(self._clock(), UTC)
            dead.letters.appendleft(DeadLetter(delivery.task, reason, given_up_at))
            dead.until = float("inf")
        return held

    async def extend(self, consumer: str, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Say that tasks are still being worked on; returns those that this consumer still holds."""
        held = [(each, message) for each in deliveries if (message := self._held(consumer, each))]
        for _, message in held:
            message.taken_at = self._clock()
        return [delivery for delivery, _ in held]

    async def counts(self, queues: Sequence[str]) -> list[Counts]:
        """Say how much of each line is ready, delayed, and in somebody's hands."""
        found = [self._promoted(queue) for queue in queues]
        return [Counts(len(each.ready), len(each.delayed), len(each.held)) for each in found]

    async def dead_letters(self, batch_id: str, *, limit: int) -> list[DeadLetter]:
        """List what was given up, newest first."""
        dead = self._dead.get(batch_id)
        return list(islice(dead.letters, limit)) if dead and self._clock() < dead.until else []

    async def forget(self, batch_id: str, partitions: Sequence[str] = (DEFAULT_PARTITION,)) -> None:
        """Remove all that these lines of a batch hold; its dead letters stay for a day."""
        for partition in partitions:
            self._lines.pop(queue_name(batch_id, partition), None)
        if batch_id in self._dead:
            self._dead[batch_id].until = self._clock() + DEAD_LETTERS_STAY.total_seconds()


class MemoryBatchRegistry:
    """`BatchBoard` in this process."""

    def __init__(self) -> None:
        self.lose_everything()

    def lose_everything(self) -> None:
        """Forget, as a Redis does that was flushed."""
        self._entries: dict[str, tuple[BatchEntry, bytes]] = {}
        self._contexts: dict[str, dict[str, bytes]] = {}
        self._lanes: dict[str, dict[str, tuple[str, ...]]] = {}

    async def upsert(self, entry: BatchEntry, spec: bytes) -> None:
        """Put a batch up, or change its listing."""
        self._entries[entry.batch_id] = entry, spec

    async def list(self) -> Sequence[BatchEntry]:
        """List all batches that are up."""
        return [entry for entry, _ in self._entries.values()]

    async def spec(self, batch_id: str) -> bytes | None:
        """Return a batch's spec; None if it is not up."""
        return self._entries[batch_id][1] if batch_id in self._entries else None

    async def unregister(self, batch_id: str) -> None:
        """Remove a batch and all that was put up for it."""
        self._entries.pop(batch_id, None)
        self._contexts.pop(batch_id, None)
        self._lanes.pop(batch_id, None)

    async def put_contexts(self, batch_id: str, contexts: Mapping[str, bytes]) -> None:
        """Leave for some evaluations what earlier ones of their group have come to."""
        self._contexts.setdefault(batch_id, {}).update(contexts)

    async def contexts(self, batch_id: str, evaluation_ids: Sequence[str]) -> Sequence[bytes | None]:
        """Return what was left for some evaluations."""
        left = self._contexts.get(batch_id, {})
        return [left.get(evaluation_id) for evaluation_id in evaluation_ids]

    async def set_lanes(self, batch_id: str, lanes: Mapping[str, Sequence[str]]) -> None:
        """Say which lanes each line of a batch has to ask."""
        if lanes:
            said = {partition: tuple(names) for partition, names in lanes.items()}
            self._lanes[batch_id] = self._lanes.get(batch_id, {}) | said

    async def lanes(self, batch_id: str) -> Mapping[str, tuple[str, ...]]:
        """Return which lanes each line of a batch has to ask, as far as an executor has said so."""
        return self._lanes.get(batch_id, {})


class MemoryExecutorRegistry:
    """`ExecutorRegistry` in this process."""

    def __init__(self, clock: Clock, *, lifetime: timedelta = INSTANCE_TTL) -> None:
        self._clock = clock
        self._lifetime = lifetime.total_seconds()
        self.lose_everything()

    def lose_everything(self) -> None:
        """Forget, as a Redis does that was flushed."""
        self._heartbeats: dict[str, tuple[float, ExecutorInstance]] = {}

    async def heartbeat(self, instance: ExecutorInstance) -> None:
        """Say that an executor is alive."""
        self._heartbeats[instance.instance_id] = self._clock() + self._lifetime, instance

    async def deregister(self, instance_id: str) -> None:
        """Say that an executor has ended in good order."""
        self._heartbeats.pop(instance_id, None)

    async def filter_live(self, instance_ids: Iterable[str]) -> set[str]:
        """Return those of these executors that are alive."""
        return {instance.instance_id for instance in self._alive()} & set(instance_ids)

    async def live(self) -> list[ExecutorInstance]:
        """List all executors that are alive."""
        return self._alive()

    def _alive(self) -> list[ExecutorInstance]:
        now = self._clock()
        self._heartbeats = {name: beat for name, beat in self._heartbeats.items() if now < beat[0]}
        return [instance for _, instance in self._heartbeats.values()]
