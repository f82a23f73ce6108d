"""The ports of coordinator and executors: the memory forms, checked, behind an unreliable network."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, cast

from eventlog import payloads as p
from projections.database.errors import DatabaseUnavailable
from projections.ledger.batch import Batch, NewBatch
from projections.ledger.contract import (
    AcceptedEvaluation,
    Decide,
    Ledger,
    OpenedAttempt,
    UnpublishedOpening,
)
from projections.ledger.memory import MemoryLedger
from taskqueue.batch_registry import BatchEntry, BatchRegistry, BatchState
from taskqueue.executor_registry import ExecutorRegistry
from taskqueue.tasks import Delivery, QueueUnavailable, Task, TaskQueue
from tests.simulation.process import Life
from tests.simulation.world import Harm, World


class _Distant:
    """Any port: each of its methods is a call over the network."""

    def __init__(self, life: Life, port: Any, unavailable: type[Exception]) -> None:
        self._life, self._port, self._unavailable = life, port, unavailable

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._port, name)

        async def call(*args: Any, **named: Any) -> Any:
            what = " ".join([name, *map(_shown, args)])
            return await self._life.call(what, partial(method, *args, **named), self._unavailable)

        return call


def distant_ledger(life: Life) -> Ledger:
    """Return the ledger."""
    return cast("Ledger", _DistantLedger(life))


def distant_queue(life: Life) -> TaskQueue:
    """Return the task queue."""
    return cast("TaskQueue", _DistantQueue(life))


def distant_batch_registry(life: Life) -> BatchRegistry:
    """Return the batch registry."""
    return cast("BatchRegistry", _DistantBatchRegistry(life))


def distant_executor_registry(life: Life) -> ExecutorRegistry:
    """Return the executor registry."""
    return cast("ExecutorRegistry", _Distant(life, life.world.redis.executor_registry, QueueUnavailable))


class _DistantLedger(_Distant):
    """The ledger, whose callers pass evaluations."""

    def __init__(self, life: Life) -> None:
        super().__init__(life, _WatchedLedger(life.world), DatabaseUnavailable)

    async def accept(
        self, batch: NewBatch, evaluations: AsyncIterator[AcceptedEvaluation], *, now: datetime
    ) -> int:
        """Accept a batch: its source is on the caller's side of the network."""
        accepted = [one async for one in evaluations]

        async def commit() -> int:
            return await self._life.world.ledger.accept(batch, _one_by_one(accepted), now=now)

        return await self._life.call(f"accept {batch.batch_id}", commit, DatabaseUnavailable)


async def _one_by_one(evaluations: Sequence[AcceptedEvaluation]) -> AsyncIterator[AcceptedEvaluation]:
    for one in evaluations:
        yield one


class _WatchedLedger:
    """The ledger, with a check that each request is consistent."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._ledger: MemoryLedger = world.ledger

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ledger, name)

    async def open_attempts(self, evaluation_ids: Sequence[str], decide: Decide) -> list[OpenedAttempt]:
        """Check that a recorded answer is passed to the next attempt."""
        world, evaluations = self._world, self._world.tables.evaluations
        before = {key: evaluations[key].row for key in evaluation_ids if key in evaluations}
        answered = {key for key in before if self._ledger._answers([key])}
        opened = await self._ledger.open_attempts(evaluation_ids, decide)
        for one in opened:
            for event, body in one.events:
                world.knowledge.bodies.setdefault((one.evaluation_id, event.key), set()).add(body)
            opening = one.events[0][0]
            world.knowledge.opened[one.evaluation_id, opening.attempt] = world.clock()
            world.log_line("ledger", f"{one.evaluation_id} {opening.attempt}: {_reason(opening.data)}")
            world.seen[f"open: {_reason(opening.data)}"] += 1
            if isinstance(opening.data, p.Queued) and one.evaluation_id in answered:
                if opening.data.answer is None:
                    world.violate(Harm.DOUBLED, f"{one.evaluation_id} is opened without its answer")
            elif before[one.evaluation_id].owner and not isinstance(opening.data, p.Queued):
                world.seen["ended in flight"] += 1
        return opened

    async def openings(self, evaluation_ids: Sequence[str]) -> list[UnpublishedOpening]:
        """Count the rows: they are read only to publish them again."""
        self._world.seen["published again"] += len(evaluation_ids)
        return await self._ledger.openings(evaluation_ids)

    async def unpublished_endings(self, *, limit: int) -> list[UnpublishedOpening]:
        """Count the rows."""
        endings = await self._ledger.unpublished_endings(limit=limit)
        self._world.seen["endings published again"] += len(endings)
        return endings

    async def release(
        self, evaluation_ids: Sequence[str], epochs: Sequence[str]
    ) -> list[UnpublishedOpening]:
        """Count the rows."""
        released = await self._ledger.release(evaluation_ids, epochs)
        self._world.seen["group advanced"] += len(released)
        return released

    async def open_window(
        self,
        batch: Batch,
        *,
        last_id: str,
        size: int,
        epochs: Sequence[str],
        by_provider: Sequence[str] = (),
    ) -> bool:
        """Count the rows after the first page."""
        opened = await self._ledger.open_window(
            batch, last_id=last_id, size=size, epochs=epochs, by_provider=by_provider
        )
        self._world.seen["another window"] += (
            opened and len(self._ledger.batches.windows[batch.batch_id]) > 1
        )
        self._world.seen["window lost"] += not opened
        return opened

    async def finish(self, batch_id: str) -> bool:
        """Count the rows."""
        over = await self._ledger.finish(batch_id)
        if over:
            self._world.seen["batch over"] += 1
            self._world.knowledge.finished[batch_id] = self._world.clock()
        return over


class _WatchedQueue:
    """The queue; a task may be delivered twice, and none of a batch seen as paused is consumed."""

    def __init__(self, life: Life) -> None:
        self._life, self._queue = life, life.world.redis.queue

    def __getattr__(self, name: str) -> Any:
        return getattr(self._queue, name)

    async def enqueue_batch(self, batch_id: str, tasks: Sequence[Task]) -> list[str]:
        """Enqueue, perhaps twice."""
        world = self._life.world
        if world.ledger.batches.held[batch_id].finished:
            world.seen["enqueued too late"] += 1
            actor = "no process" if world.is_belated else self._life.name
            world.knowledge.strays.setdefault(batch_id, set()).add(actor)
        if world.chance(world.faults.doubled_tasks):
            world.seen["task doubled"] += 1
            await self._queue.enqueue_batch(batch_id, tasks)
        return await self._queue.enqueue_batch(batch_id, tasks)

    async def consume(
        self, consumer: str, wanted: Mapping[str, int], *, block: timedelta
    ) -> list[Delivery]:
        """Consume tasks."""
        taken = await self._queue.consume(consumer, wanted, block=block)
        for each in taken:
            self._life.world.log_line(consumer, f"  takes {each.task.evaluation_id} {each.task.attempt}")
        return taken

    async def claim_stalled(
        self, consumer: str, batch_ids: Sequence[str], *, idle: timedelta, limit: int
    ) -> list[Delivery]:
        """Take over stalled tasks of other consumers."""
        taken = await self._queue.claim_stalled(consumer, batch_ids, idle=idle, limit=limit)
        self._life.world.seen["task taken over"] += len(taken)
        return taken

    async def nack(self, consumer: str, delivery: Delivery) -> bool:
        """Nack a task."""
        self._life.world.seen["task given back"] += 1
        return await self._queue.nack(consumer, delivery)


class _DistantQueue(_Distant):
    """The queue, with a check that only batches seen as running are consumed."""

    def __init__(self, life: Life) -> None:
        super().__init__(life, _WatchedQueue(life), QueueUnavailable)

    async def consume(
        self, consumer: str, wanted: Mapping[str, int], *, block: timedelta
    ) -> list[Delivery]:
        """Check that no task is consumed of a batch that was seen as paused, stopped or gone."""
        for batch_id in sorted(wanted.keys() - self._life.seen_running):
            self._life.world.violate(
                Harm.VIOLATION, f"{consumer} asks for tasks of {batch_id}, which rests"
            )
        ask = partial(self._port.consume, consumer, wanted, block=block)
        taken: list[Delivery] = await self._life.call(f"consume {_shown(wanted)}", ask, QueueUnavailable)
        return taken


class _DistantBatchRegistry(_Distant):
    """The batch registry, and what one process has read from it."""

    def __init__(self, life: Life) -> None:
        super().__init__(life, life.world.redis.batch_registry, QueueUnavailable)

    async def list(self) -> Sequence[BatchEntry]:
        """Read the entries, and remember them."""
        batch_registry = self._life.world.redis.batch_registry
        entries = await self._life.call("list", batch_registry.list, QueueUnavailable)
        self._life.seen_running = {each.batch_id for each in entries if each.state is BatchState.RUNNING}
        return entries


def _reason(opening: object) -> str:
    return opening.reason if isinstance(opening, p.Queued) else type(opening).__name__


def _shown(value: object) -> str:
    match value:
        case str() | int():
            return str(value)
        case Batch(batch_id=batch_id) | BatchEntry(batch_id=batch_id):
            return batch_id
        case Delivery(task=task):
            return f"{task.evaluation_id} {task.attempt}"
        case dict() | list():
            return ",".join(map(_shown, value))
        case Task(evaluation_id=evaluation_id, attempt=attempt):
            return f"{evaluation_id}:{attempt}"
        case _:
            return type(value).__name__
