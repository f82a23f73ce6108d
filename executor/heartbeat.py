"""Saying that an executor is alive, and that what it has in hand is being worked on."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from datetime import timedelta

from executor.outage import Outage, OutageBackoff
from executor.slot_pool import SlotPool
from executor.telemetry import ExecutorCounters
from taskqueue.executor_registry import ExecutorInstance, ExecutorRegistry
from taskqueue.tasks import QueueUnavailable, TaskQueue


class Heartbeat:
    """One executor's sign of life."""

    def __init__(  # noqa: PLR0913 - it beats for all of them
        self,
        executor_registry: ExecutorRegistry,
        tasks: TaskQueue,
        hands: SlotPool,
        *,
        instance: Callable[[], ExecutorInstance],
        outage: Outage,
        counters: ExecutorCounters,
        confirmation: asyncio.Event,
    ) -> None:
        self._executor_registry = executor_registry
        self._tasks = tasks
        self._slot_pool = hands
        self._instance = instance
        self._backoff = OutageBackoff(outage, longest=1.0)
        self._counters = counters
        self._confirmation = confirmation

    async def arrive(self, *, unless: Callable[[], bool]) -> None:
        """Be there before the first claim: an owner nobody has seen would be taken for dead."""
        while not unless():
            try:
                await self._beat_once()
            except QueueUnavailable as error:
                await self._backoff.wait(error)
            else:
                self._backoff.succeeded()
                return

    async def run(self, interval: timedelta) -> None:
        """Send a heartbeat every interval, and at once when the log's epochs are confirmed."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(interval.total_seconds()):
                    await self._confirmation.wait()
            self._confirmation.clear()
            await self._beat()

    async def _beat(self) -> None:
        while True:
            try:
                await self._beat_once()
                if in_hand := [hand.delivery for hand in self._slot_pool]:
                    await self._tasks.extend(self._instance().instance_id, in_hand)
            except QueueUnavailable as error:
                await self._backoff.wait(error)
            else:
                self._backoff.succeeded()
                return

    async def _beat_once(self) -> None:
        await self._executor_registry.heartbeat(self._instance())
        self._counters.beat()

    async def leave(self) -> None:
        """Say goodbye; whoever does not hear it finds out when the beats stop."""
        await self._executor_registry.deregister(self._instance().instance_id)
