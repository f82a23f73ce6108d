"""The leader's collection of metrics: every few seconds, and only where an exporter is configured."""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import timedelta
from time import monotonic

from coordinator import telemetry
from coordinator.metrics import OTHER, CoordinatorMetrics, FleetOverview
from projections.database.errors import DatabaseUnavailable
from projections.queries.monitoring import ActiveBatch, BatchMonitor
from taskqueue.backends import Queues
from taskqueue.queue_layout import queue_name
from taskqueue.tasks import QueueCounts, QueueUnavailable

logger = logging.getLogger(__name__)

REDIS, POSTGRES = "redis", "postgres"
INTERVAL = 5.0
NAMED = 50
"""Batches that have series of their own."""
FINISHED_WITHIN = timedelta(minutes=10)
"""How long a finished batch has a series: longer than the range of the alert that names it."""
BEYOND = timedelta(minutes=15)
STUCK_LIMIT = 1_000
STUCK_EVERY = 60.0
"""Seconds between two counts of stuck evaluations: the query reads everything in flight."""


class MetricsCollector:
    """Reads the values that a coordinator's gauges report."""

    def __init__(
        self,
        view: CoordinatorMetrics,
        monitor: BatchMonitor,
        queues: Queues,
        *,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.view = view
        self._monitor = monitor
        self._queues = queues
        self._clock = clock
        self._stuck: tuple[int, float] | None = None

    async def collect_forever(self) -> None:
        """Collect until cancelled."""
        self._stuck = None  # an earlier count is outdated: another coordinator has led meanwhile
        while True:
            if telemetry.is_wired():
                await self.observe()
            await asyncio.sleep(INTERVAL)

    async def observe(self) -> None:
        """Collect once; values that can't be read now are read the next time."""
        try:
            batches = await self._monitor.batches(limit=NAMED)
            stuck, provider_batches = await self._stuck_now(), await self._monitor.provider_batches()
            finished = await self._monitor.finished(within=FINISHED_WITHIN, limit=NAMED)
            self.view.dependencies.reached(POSTGRES)
            queued = await self._queued(batches)
            workers = len(await self._queues.executor_registry.live())
            self.view.dependencies.reached(REDIS)
            self.view.show(
                FleetOverview(tuple(batches), queued, workers, stuck, provider_batches, tuple(finished))
            )
        except DatabaseUnavailable:
            self.view.dependencies.missed(POSTGRES)
        except QueueUnavailable:
            self.view.dependencies.missed(REDIS)
        except Exception:  # a failure of metrics must not stop the leader
            logger.exception("collecting metrics failed")

    async def _stuck_now(self) -> int:
        if self._stuck is None or self._clock() - self._stuck[1] >= STUCK_EVERY:
            count = await self._monitor.stuck(beyond=BEYOND, limit=STUCK_LIMIT)
            self._stuck = count, self._clock()
        return self._stuck[0]

    async def _queued(self, batches: Sequence[ActiveBatch]) -> dict[str, QueueCounts]:
        named = {batch.batch_id for batch in batches if batch.batch_id}
        queues = [
            (entry.batch_id if entry.batch_id in named else OTHER, queue_name(entry.batch_id, partition))
            for entry in await self._queues.batch_registry.list()
            for partition in entry.partitions
        ]
        counted = await self._queues.tasks.counts([queue for _, queue in queues]) if queues else []
        found: defaultdict[str, QueueCounts] = defaultdict(QueueCounts)
        for (batch_id, _), more in zip(queues, counted, strict=True):
            found[batch_id] += more
        return dict(found)
