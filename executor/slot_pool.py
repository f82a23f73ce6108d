"""What an executor has in hand: one place for each slot, and how work in it is interrupted.

An interruption reaches only a target or an evaluator at work. Everything else, above all what is said to
the log, runs to its end and then finds that it was interrupted.
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
"""Seconds in which an evaluation is over before its neighbours could be told apart."""
RECENT = 0.05
"""Weight of the last evaluation in what is typical."""


class InterruptReason(Enum):
    """Why work in hand is to end before its time."""

    STOPPED = "the batch was stopped"
    SHUTDOWN = "the executor is shutting down"


class Interrupted(Exception):  # noqa: N818 - what happened
    """Work ends here, because somebody said so."""

    def __init__(self, ending: InterruptReason) -> None:
        super().__init__(ending.value)
        self.ending = ending


@dataclass(slots=True, eq=False)
class ActiveTask:
    """One task that is being worked on."""

    delivery: Delivery
    ending: InterruptReason | None = None
    since: float = 0.0
    is_recorded: bool = False
    """Whether nothing is left to do but to wait until its end is on record."""
    _worker: "asyncio.Task[object] | None" = None
    """Whom to cancel, while it may be."""
    _on_recorded: Callable[[float], float] | None = None
    permits: Permits = NO_PERMITS
    limit: float = inf
    """Seconds after which it should be over, once that is known."""
    mode: str = "unknown"
    """The type of its target, once that is known."""
    took: float | None = None
    """Seconds from taking it to its closing event."""
    traceparent: str | None = None

    def interrupt(self, ending: InterruptReason) -> None:
        """Have the work end now if it can, else as soon as it can.

        Only once: a second cancellation would hit a target that is cleaning up after the first.
        """
        if self.ending is None:
            self.ending = ending
            if self._worker:
                self._worker.cancel()

    def mark_recorded(self) -> None:
        """Free the slot: the end is written, and only the log's answer is waited for."""
        if not self.is_recorded:
            self.is_recorded = True
            if self._on_recorded:
                self.took = self._on_recorded(self.since)

    async def at_work(self, work: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
        """Do something that may be interrupted; raises `Interrupted`."""
        if self.ending:
            raise Interrupted(self.ending)
        worker = self._worker = asyncio.current_task()
        try:
            return await work(*args, **kwargs)
        except asyncio.CancelledError:
            if ending := self._ending_now():
                raise Interrupted(ending) from None
            if worker and not worker.cancelling():
                raise Permanent("error", "it cancelled itself") from None
            raise
        finally:
            self._worker = None
            if worker and self._ending_now():
                _accept(worker)

    def _ending_now(self) -> InterruptReason | None:
        """Look again: it may have changed while somebody was waiting."""
        return self.ending


def _accept(worker: "asyncio.Task[object]") -> None:
    """Say that a cancellation was heard, so that it does not come up again in what follows."""
    while worker.cancelling():
        worker.uncancel()


class SlotPool:
    """All that is in hand, and how much more there could be."""

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self._held: dict[tuple[str, str], ActiveTask] = {}
        self._recorded = 0
        self._typical = 2 * QUICK  # not known yet: the first handful would set the beat for all that follow
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        return len(self._held)

    def __iter__(self) -> Iterator[ActiveTask]:
        return iter(list(self._held.values()))

    @property
    def is_quick(self) -> bool:
        """Whether slots have lately been free again before anybody could look."""
        return self._typical < QUICK

    @property
    def busy(self) -> int:
        """Slots with work in them."""
        return len(self._held) - self._recorded

    @property
    def free(self) -> int:
        """Slots without work; none, where the log is so far behind that as much again waits for it."""
        return self.slots - self.busy if self._recorded < self.slots else 0

    @property
    def batches(self) -> set[str]:
        """The batches that something is in hand of."""
        return {split_queue(queue)[0] for queue, _ in self._held}

    def take(self, deliveries: Iterable[Delivery]) -> list[ActiveTask]:
        """Take hold of tasks; what is in hand already is not taken again."""
        new = [each for each in deliveries if (each.queue, each.id) not in self._held]
        now = asyncio.get_running_loop().time()
        taken = [ActiveTask(delivery, since=now, _on_recorded=self._on_recorded) for delivery in new]
        self._held |= {(hand.delivery.queue, hand.delivery.id): hand for hand in taken}
        return taken

    def release(self, hand: ActiveTask) -> None:
        """Have no more to do with a task."""
        if self._held.pop((hand.delivery.queue, hand.delivery.id), None) and hand.is_recorded:
            self._recorded -= 1
        hand.permits.release()
        self._changed.set()

    def _on_recorded(self, since: float) -> float:
        self._recorded += 1
        took = asyncio.get_running_loop().time() - since
        self._typical += RECENT * (took - self._typical)
        self._changed.set()
        return took

    async def changed(self) -> None:
        """Wait until a slot was freed."""
        self._changed.clear()
        await self._changed.wait()

    async def empty(self) -> None:
        """Wait until nothing is in hand."""
        while self._held:
            await self.changed()
