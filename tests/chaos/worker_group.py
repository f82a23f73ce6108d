"""Workers of one kind: restarted after each death, and reconfigured while they run."""

import asyncio
import signal
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Generic, TypeVar

from eventlog.tasks import end
from tests.chaos.children import Child
from tests.chaos.fleet_members import CoordinatorOrders, ExecutorOrders
from tests.chaos.notebook import Notebook
from tests.chaos.worker import Orders
from tests.waiting import until

O = TypeVar("O", Orders, ExecutorOrders, CoordinatorOrders)  # noqa: E741 - orders

PAUSE = 0.02
"""Seconds between an end and the next start; a real supervisor waits longer each time, a test can't."""
TIMEOUT = 30.0
TOO_SOON = 0.5
"""Seconds within which no worker ends by itself, unless it can't start."""


@dataclass(slots=True, eq=False)
class Hand(Generic[O]):
    """One worker's place: the process that fills it, and how those before ended."""

    orders: O
    child: Child | None = None
    exits: list[int] = field(default_factory=list)
    keeper: asyncio.Task[None] | None = None


class WorkerGroup(Generic[O]):
    """Workers, each started again when it ends."""

    def __init__(self, orders: O, work: Callable[[O], None], log: Path, *, kind: str = "worker") -> None:
        self.notebook = Notebook(orders.notebook)
        self.hands: list[Hand[O]] = []
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
        if [hand.orders for hand in self.hands] != wanted:
            await self.dismiss()
            self.hands = [self._hire(orders) for orders in wanted]

    async def kill(self, number: int = 0) -> None:
        """kill -9 one worker, and see the next in its place."""
        hand = self.hands[number]
        ended = len(hand.exits)
        child = await until(lambda: hand.child, TIMEOUT)
        child.signal(signal.SIGKILL)
        await until(lambda: len(hand.exits) > ended and hand.child is not None, TIMEOUT)

    async def dismiss(self) -> None:
        """kill -9 all of them, and start none."""
        await end([hand.keeper for hand in self.hands if hand.keeper])
        for hand in self.hands:
            if hand.child:
                await hand.child.kill()
        self.hands = []

    def _hire(self, orders: O) -> Hand[O]:
        hand = Hand(orders)
        hand.keeper = asyncio.create_task(self._keep(hand))
        return hand

    async def _keep(self, hand: Hand[O]) -> None:
        loop = asyncio.get_running_loop()
        while True:
            started = loop.time()
            hand.child = Child(self._work, hand.orders, log=self._log)
            code = await hand.child.ended()
            hand.child = None
            hand.exits.append(code)
            self.notebook.note(f"{self._kind} {'killed' if code < 0 else 'left by itself'}")
            hand.orders = hand.orders.reborn()
            await asyncio.sleep(PAUSE if code < 0 or loop.time() > started + TOO_SOON else TOO_SOON)
