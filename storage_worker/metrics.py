"""Gauges of a storage worker: the values that metrics read from it, and the poll of its dependencies."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import time

import psycopg
from opentelemetry.metrics import Observation
from psycopg_pool import AsyncConnectionPool
from redis.exceptions import RedisError, ResponseError

from eventlog.gauges import DependencyHealth, GaugeSet
from eventlog.timeline import arrival_ms
from storage_worker import telemetry
from storage_worker.stream_diff import Resolution

REDIS, POSTGRES = "redis", "postgres"
POLL_SECONDS = 5.0
MAX_GAPS = 10_000
GAP_TTL = 60.0
"""Seconds after which a gap that was not read again belongs to another worker: each sweep reads all."""
IDLE_SECONDS = 15.0
"""Seconds without a wake-up after which the lag is 0."""


class StorageMetrics:
    """The current values of one storage worker's gauges."""

    def __init__(self, clock: Callable[[], float], is_degraded: Callable[[], bool]) -> None:
        self._clock = clock
        self.is_degraded = is_degraded
        self.dependencies = DependencyHealth()
        self.gaps: dict[str, tuple[int, float]] = {}
        """Evaluations with a gap: since when, on the log's clock, and when that was read."""
        self.backlog: int | None = None
        self._ahead_ms = time() * 1000 - clock() * 1000
        self._in_progress: dict[object, int] = {}
        self._last: tuple[float, float] = (0.0, -IDLE_SECONDS)
        """The lag of the wake-ups that were finished last, and when that was."""

    def synchronize(self, now_ms: int) -> None:
        """Take over the log's time; until then the host's is used."""
        self._ahead_ms = now_ms - self._clock() * 1000

    def record_gaps(self, resolutions: Sequence[Resolution]) -> None:
        """Replace the gaps of the evaluations that a pass has read."""
        now = self._clock()
        for resolution in resolutions:
            if (change := resolution.change) is None:
                continue
            if self.gaps:
                self.gaps.pop(change.evaluation_id, None)
            if resolution.gap and len(self.gaps) < MAX_GAPS:
                self.gaps[change.evaluation_id] = (resolution.gap.since_ms, now)

    def open_gaps(self) -> list[int]:
        """Return since when each known gap has been open."""
        since = self._clock() - GAP_TTL
        self.gaps = {key: gap for key, gap in self.gaps.items() if gap[1] >= since}
        return [opened for opened, _ in self.gaps.values()]

    @contextmanager
    def processing(self, entry_ids: Iterable[bytes]) -> Iterator[None]:
        """Report the age of these wake-ups as the lag while the block lasts."""
        token, oldest = object(), min(map(arrival_ms, entry_ids), default=0)
        self._in_progress[token], lag = oldest, self._age(oldest)
        try:
            yield
        finally:
            del self._in_progress[token]
            self._last = lag, self._clock()

    def lag(self) -> float:
        """Return the age of the oldest wake-up in progress, or of the last one when it was read."""
        if self._in_progress:
            return self._age(min(self._in_progress.values()))
        lag, at = self._last
        return lag if self._clock() - at < IDLE_SECONDS else 0.0

    def gap_age(self) -> float:
        """Return the age of the oldest gap."""
        return self._age(min(opened)) if (opened := self.open_gaps()) else 0.0

    def _age(self, since_ms: int) -> float:
        return max(0.0, self._clock() + (self._ahead_ms - since_ms) / 1000)


def _backlog(metrics: StorageMetrics) -> list[Observation]:
    return [] if metrics.backlog is None else [Observation(metrics.backlog)]


GAUGES: GaugeSet[StorageMetrics] = GaugeSet("scoreline.storage_worker")
GAUGES.gauge(
    "eval_storage_gaps_open",
    "Evaluations with a gap",
    lambda m: [Observation(len(m.open_gaps()))],
)
GAUGES.gauge("eval_storage_gap_age_seconds", "Age of the oldest gap", lambda m: [Observation(m.gap_age())])
GAUGES.gauge(
    "eval_storage_lag_seconds", "Age of the oldest wake-up in progress", lambda m: [Observation(m.lag())]
)
GAUGES.gauge("eval_storage_backlog", "Wake-ups not yet acknowledged", _backlog)
GAUGES.gauge(
    "eval_storage_degraded",
    "1 while gaps are bridged without waiting",
    lambda m: [Observation(int(m.is_degraded()))],
)
GAUGES.gauge(
    "eval_dependency_up", "1 if the last request succeeded", lambda m: m.dependencies.observations()
)


async def poll_forever(
    metrics: StorageMetrics, backlog: Callable[[], Awaitable[Mapping[str, int]]], pool: AsyncConnectionPool
) -> None:
    """Poll backlog and dependencies until cancelled; only while metrics are exported."""
    telemetry.begin()
    while True:
        if telemetry.is_wired():
            await poll(metrics, backlog, pool)
        await asyncio.sleep(POLL_SECONDS)


async def poll(
    metrics: StorageMetrics, backlog: Callable[[], Awaitable[Mapping[str, int]]], pool: AsyncConnectionPool
) -> None:
    """Count the backlog, and check that Redis and Postgres respond."""
    try:
        metrics.backlog = sum((await backlog()).values())
        metrics.dependencies.reached(REDIS)
    except ResponseError:  # it responds, and has lost the streams
        metrics.backlog = None
        metrics.dependencies.reached(REDIS)
    except (RedisError, OSError):
        metrics.backlog = None
        metrics.dependencies.missed(REDIS)
    try:
        async with pool.connection() as conn:
            await conn.execute("SELECT 1")
        metrics.dependencies.reached(POSTGRES)
    except (psycopg.Error, OSError):
        metrics.dependencies.missed(POSTGRES)
