"""Workers of one kind: restarted after each death, and reconfigured while they run."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from eventlog.tasks import end
from tests.chaos.call_log import CallLog
from tests.chaos.children import Child
from tests.chaos.fleet_members import CoordinatorOrders, ExecutorOrders
from tests.chaos.worker import Orders
from tests.waiting import until

O = TypeVar("O", Orders, ExecutorOrders, CoordinatorOrders)  # noqa: E741 - orders

PAUSE = 0.02
"""Seconds between an end and the next start; a real supervisor waits longer each time, a test can't."""
TIMEOUT = 30.0
TOO_SOON = 0.5
"""Seconds within which no worker ends by itself, unless it can't start."""


@dataclass(slots=True, eq=False)
class WorkerSlot(Generic[O]):
    """One worker's place: the process that fills it, and how those before ended."""

    orders: O
    child: Child | None = None
    exits: list[int] = field(default_factory=list)
    keeper: asyncio.Task[None] | None = None


class WorkerGroup(Generic[O]):
    """Workers, each started again when it ends."""

    def __init__(self, orders: O, work: Callable[[O], None], log: Path, *, kind: str = "worker") -> None:
        self.call_log = CallLog(orders.call_log)
        self.slots: list[WorkerSlot[O]] = []
        self.orders: O = orders
        self._work: Callable[[O], None] = work
        self._log = log
        self._kind = kind

    async def muster(self, workers: int, *, called: str = "chaos", **changes: object) -> None:
        """Have so many workers with these orders; those that already are stay."""
        wanted = [
            replace(self.orders, name=f"{called}-{number}", **changes)  # type: ignore[arg-type]  # by name
            for number in range(workers)
        ]
        if [slot.orders for slot in self.slots] != wanted:
            await self.dismiss()
            self.slots = [self._hire(orders) for orders in wanted]

    async def kill(self, number: int = 0) -> None:
        """kill -9 one worker, and see the next in its place."""
        slot = self.slots[number]
        ended = len(slot.exits)
        child = await until(lambda: slot.child, TIMEOUT)
        child.signal(signal.SIGKILL)
        await until(lambda: len(slot.exits) > ended and slot.child is not None, TIMEOUT)

    async def dismiss(self) -> None:
        """kill -9 all of them, and start none."""
        await end([slot.keeper for slot in self.slots if slot.keeper])
        for slot in self.slots:
            if slot.child:
                await slot.child.kill()
        self.slots = []

    def _hire(self, orders: O) -> WorkerSlot[O]:
        slot = WorkerSlot(orders)
        slot.keeper = asyncio.create_task(self._keep(slot))
        return slot

    async def _keep(self, slot: WorkerSlot[O]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            slot.child = Child(self._work, slot.orders, log=self._log)
            code = await slot.child.ended()
            slot.child = None
            slot.exits.append(code)
            self.call_log.note(f"{self._kind} {'killed' if code < 0 else 'left by itself'}")
            slot.orders = slot.orders.reborn()
            await asyncio.sleep(PAUSE if code < 0 or loop.time() > started + TOO_SOON else TOO_SOON)
