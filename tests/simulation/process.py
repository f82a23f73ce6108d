"""A process that crashes at any moment and is restarted under another name."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

from tests.simulation.world import Fate, Harm, World

T = TypeVar("T")


class Life:
    """One life of a process: once dead, none of its calls reaches a server."""

    def __init__(self, world: World, process: "Process", name: str) -> None:
        self.world = world
        self.name = name
        self.is_dead = False
        self.frozen_until = 0.0
        self.seen_running: set[str] = set()
        """The batches that were running at its last read of the batch registry."""
        self._process = process
        self._tasks: list[asyncio.Task[None]] = []

    def spawn(self, work: Coroutine[Any, Any, None]) -> None:
        """Run a coroutine for as long as this life lasts."""
        self.adopt(asyncio.get_running_loop().create_task(work))

    def adopt(self, task: "asyncio.Task[None]") -> None:
        """Bind a task to this life; if it ends by itself, the run has failed."""
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (error := task.exception()):
            self.world.violate(Harm.VIOLATION, f"{self.name} broke: {error!r}")

    def kill(self) -> None:
        """Crash between two instructions."""
        self.end()
        self.world.log_line(self.name, "dies")
        self.world.seen["crash"] += 1
        self._process.died()

    def depart(self) -> None:
        """End in good order."""
        self.end()
        self.world.log_line(self.name, "departs")
        self._process.died()

    def end(self) -> None:
        """Stop everything, for good."""
        self.is_dead = True
        self.world.knowledge.dead.add(self.name)
        for task in self._tasks:
            task.cancel()

    async def travel(self) -> None:
        """Delay a message, or wait until this process is no longer frozen."""
        if delay := self.world.draw_delay():
            await asyncio.sleep(delay)
        while (still := self.frozen_until - self.world.clock()) > 0:  # noqa: ASYNC110 - may be prolonged
            await asyncio.sleep(still)
        if self.is_dead:
            await asyncio.get_running_loop().create_future()  # a dead process waits for ever

    async def call(self, what: str, happen: Callable[[], Awaitable[T]], unavailable: type[Exception]) -> T:
        """Call a server, with any fault that a call may have."""
        fate = self.world.draw_fate()
        if fate is not Fate.FINE:
            self.world.seen[fate] += 1
        await self.travel()
        if fate not in {Fate.FINE, Fate.REPLY_LOST, Fate.KILLED_AFTER}:
            await self._unheard(what, happen, fate, unavailable)
        answer = await happen()
        self.world.log_line(self.name, what if fate is Fate.FINE else f"{what} [{fate}]")
        if fate is Fate.KILLED_AFTER:
            self.kill()
        await self.travel()
        if fate is Fate.REPLY_LOST:
            await asyncio.sleep(self.world.random.uniform(0.1, 1.0))
            raise unavailable(f"{what}: no reply")
        return answer

    async def _unheard(
        self, what: str, happen: Callable[[], Awaitable[T]], fate: Fate, unavailable: type[Exception]
    ) -> None:
        """Hide the result of a call from its caller; the call may still happen."""
        self.world.log_line(self.name, f"{what} [{fate}]")
        if fate is Fate.KILLED_BEFORE:
            self.kill()
            await asyncio.get_running_loop().create_future()
        if fate is Fate.BELATED:
            self.world.happen_later(happen)
            await asyncio.sleep(self.world.random.uniform(0.1, 1.0))
        raise unavailable(f"{what}: {fate}")


class Process:
    """A service and its supervisor."""

    def __init__(self, world: World, name: str) -> None:
        self.world = world
        self.name = name
        self.lives = 0
        self.is_retired = False
        self.start()

    def start(self) -> None:
        """Begin another life."""
        if self.is_retired:
            return
        self.lives += 1
        self.life = Life(self.world, self, f"{self.name}.{self.lives}")
        self.life.spawn(self.main(self.life))

    async def main(self, life: Life) -> None:
        """Run this service, until killed."""
        raise NotImplementedError

    def died(self) -> None:
        """Restart it, some time later."""
        self.world.loop.call_later(self.world.random.uniform(0.2, 4.0), self.start)

    def retire(self) -> None:
        """End the service for good."""
        self.is_retired = True
        self.life.end()
