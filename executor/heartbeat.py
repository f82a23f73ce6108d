"""Heartbeats: an executor's registration, and the visibility of its tasks, renewed at an interval."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from eventlog.outage import OutageBackoff
from executor.slot_pool import SlotPool
from executor.telemetry import ExecutorCounters
from taskqueue.executor_registry import ExecutorInstance, ExecutorRegistry
from taskqueue.tasks import QueueUnavailable, TaskQueue


@dataclass(frozen=True, slots=True, kw_only=True)
class Heartbeat:
    """The heartbeat of one executor."""

    registry: ExecutorRegistry
    tasks: TaskQueue
    slot_pool: SlotPool
    counters: ExecutorCounters
    backoff: OutageBackoff
    instance: Callable[[], ExecutorInstance]
    """Returns the executor's registration as it is now."""
    confirmation: asyncio.Event
    """Set when the event queue has confirmed the epoch of every shard."""

    async def register(self, *, unless: Callable[[], bool]) -> None:
        """Register before the first claim: an owner without a heartbeat would be taken for dead."""
        while not unless():
            try:
                await self._send()
            except QueueUnavailable as error:
                await self.backoff.wait(error)
            else:
                self.backoff.succeeded()
                return

    async def run(self, interval: timedelta) -> None:
        """Send a heartbeat every interval, and at once when the log's epochs are confirmed."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(interval.total_seconds()):
                    await self.confirmation.wait()
            self.confirmation.clear()
            await self._send_and_extend()

    async def _send_and_extend(self) -> None:
        """Send a heartbeat and extend the visibility timeout of every active task."""
        while True:
            try:
                await self._send()
                if deliveries := [task.delivery for task in self.slot_pool]:
                    await self.tasks.extend(self.instance().instance_id, deliveries)
            except QueueUnavailable as error:
                await self.backoff.wait(error)
            else:
                self.backoff.succeeded()
                return

    async def _send(self) -> None:
        await self.registry.heartbeat(self.instance())
        self.counters.heartbeat()

    async def deregister(self) -> None:
        """Remove the registration; where that fails, it expires with the last heartbeat."""
        await self.registry.deregister(self.instance().instance_id)
