"""The executor's slots: which tasks are active, and how a running call is interrupted.

Only a call of a target or an evaluator is interrupted. Everything else, above all appends to the event log,
runs to its end; the next call then finds that its task was interrupted.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator
from dataclasses import dataclass
from enum import Enum
from math import inf
from typing import ParamSpec, TypeVar

from executor.contract import Permanent
from executor.lanes.permits import NO_PERMITS, Permits
from taskqueue.queue_layout import split_queue
from taskqueue.tasks import Delivery

P = ParamSpec("P")
T = TypeVar("T")


QUICK = 0.25
"""Seconds: below this typical duration a slot is free again before the next fetch."""
RECENT = 0.05
"""Weight of the newest duration in the moving average."""


class InterruptReason(Enum):
    """Why an active task is interrupted."""

    BATCH_STOPPED = "the batch was stopped"
    SHUTDOWN = "the executor is shutting down"


class Interrupted(Exception):  # noqa: N818 - what happened
    """The task was interrupted."""

    def __init__(self, reason: InterruptReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


@dataclass(slots=True, eq=False)
class ActiveTask:
    """A task that occupies a slot."""

    delivery: Delivery
    interrupted_by: InterruptReason | None = None
    acquired_at: float = 0.0
    is_recorded: bool = False
    """Whether the closing event is recorded, and only its acknowledgement is awaited."""
    _running: "asyncio.Task[object] | None" = None
    """The asyncio task to cancel, during an interruptible call."""
    _on_recorded: Callable[[float], float] | None = None
    permits: Permits = NO_PERMITS
    deadline: float = inf
    """Seconds that the attempt may take, once its batch is known."""
    mode: str = "unknown"
    """The type of its target, once that is known."""
    duration: float | None = None
    """Seconds from acquiring the slot to the closing event."""
    traceparent: str | None = None

    def interrupt(self, reason: InterruptReason) -> None:
        """Cancel the running call, or the next one.

        Only once: a second cancellation would hit a target that is cleaning up after the first.
        """
        if self.interrupted_by is None:
            self.interrupted_by = reason
            if self._running:
                self._running.cancel()

    def mark_recorded(self) -> None:
        """Free the slot: the closing event is recorded, and only its acknowledgement is awaited."""
        if not self.is_recorded:
            self.is_recorded = True
            if self._on_recorded:
                self.duration = self._on_recorded(self.acquired_at)

    def raise_if_interrupted(self) -> None:
        """Raise `Interrupted` after an interruption."""
        if self.interrupted_by:
            raise Interrupted(self.interrupted_by)

    async def interruptible(self, call: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Await a call that `interrupt` may cancel; raises `Interrupted`."""
        self.raise_if_interrupted()
        running = self._running = asyncio.current_task()
        try:
            return await call(*args, **kwargs)
        except asyncio.CancelledError:
            self.raise_if_interrupted()
            if running and not running.cancelling():
                raise Permanent("error", "it cancelled itself") from None
            raise
        finally:
            self._running = None
            if running and self.interrupted_by:
                _uncancel(running)


def _uncancel(running: "asyncio.Task[object]") -> None:
    """Withdraw the cancellation: it must not reach what follows the call."""
    while running.cancelling():
        running.uncancel()


class SlotPool:
    """The active tasks, and the slots that are free."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._active: dict[tuple[str, str], ActiveTask] = {}
        self._recorded = 0
        self._typical = 2 * QUICK  # unknown at first: the first few must not decide for all that follow
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._active)

    def __iter__(self) -> Iterator[ActiveTask]:
        return iter(list(self._active.values()))

    @property
    def is_quick(self) -> bool:
        """Whether evaluations have lately been so short that slots are free again before the next fetch."""
        return self._typical < QUICK

    @property
    def busy(self) -> int:
        """Slots in use."""
        return len(self._active) - self._recorded

    @property
    def free(self) -> int:
        """Slots not in use; none while as many closing events again await their acknowledgement."""
        return self.slots - self.busy if self._recorded < self.slots else 0

    @property
    def batches(self) -> set[str]:
        """The batches of active tasks."""
        return {split_queue(queue)[0] for queue, _ in self._active}

    def acquire(self, deliveries: Iterable[Delivery]) -> list[ActiveTask]:
        """Put deliveries into slots; a redelivery of an active task is ignored."""
        new = [each for each in deliveries if (each.queue, each.id) not in self._active]
        now = asyncio.get_running_loop().time()
        tasks = [ActiveTask(delivery, acquired_at=now, _on_recorded=self._on_recorded) for delivery in new]
        self._active |= {(task.delivery.queue, task.delivery.id): task for task in tasks}
        return tasks

    def release(self, task: ActiveTask) -> None:
        """Free the slot of a task, and return its permits."""
        if self._active.pop((task.delivery.queue, task.delivery.id), None) and task.is_recorded:
            self._recorded -= 1
        task.permits.release()
        self._changed.set()

    def _on_recorded(self, acquired_at: float) -> float:
        self._recorded += 1
        duration = asyncio.get_running_loop().time() - acquired_at
        self._typical += RECENT * (duration - self._typical)
        self._changed.set()
        return duration

    async def changed(self) -> None:
        """Wait until a slot is freed."""
        self._changed.clear()
        await self._changed.wait()

    async def empty(self) -> None:
        """Wait until no task is active."""
        while self._active:
            await self.changed()
