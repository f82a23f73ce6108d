"""The epoch of each shard of the log, and whether the owners of attempts have re-appended them in it."""

import asyncio
from collections.abc import Callable
from datetime import timedelta

from coordinator.grace import Grace
from eventlog.keys import shard_of
from eventlog.log import LogWriter
from taskqueue.executor_registry import ExecutorRegistry


class EpochTracker:
    """The epochs of the log as one coordinator observes them, and the executors that confirmed them."""

    def __init__(
        self,
        log: LogWriter,
        executor_registry: ExecutorRegistry,
        *,
        grace: timedelta,
        clock: Callable[[], float],
    ) -> None:
        self._log = log
        self._executor_registry = executor_registry
        self._clock = clock
        self._grace = Grace(grace.total_seconds())
        self._lock = asyncio.Lock()
        """Concurrent reads could be observed in the wrong order."""

    async def refresh(self) -> list[str]:
        """Read the current epochs and, when due, the epochs that executors have confirmed."""
        async with self._lock:
            self._grace.begin(self._clock())
            self._grace.observe_epochs(await self._log.epochs(), self._clock())
            if self._grace.needs_roster(self._clock()):
                present = await self._executor_registry.live()
                self._grace.observe_roster({one.instance_id: one.epochs for one in present}, self._clock())
            return self._grace.epochs

    def of(self, evaluation_id: str) -> str:
        """Return the epoch of an evaluation's shard, as last read."""
        return self._grace.epochs[shard_of(evaluation_id, self._log.shards)]

    def is_settled(self, evaluation_id: str) -> bool:
        """Whether the grace period of an evaluation's shard is over."""
        return self._grace.is_over(shard_of(evaluation_id, self._log.shards), self._clock())

    @property
    def current(self) -> list[str]:
        """The epochs as last read."""
        return self._grace.epochs

    @property
    def all_settled(self) -> bool:
        """Whether the grace period of every shard is over."""
        return self._grace.all_over(self._clock())
