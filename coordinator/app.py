"""The coordinator process: leader election by an advisory lock in Postgres, then cycles until a signal.

Only the leader runs cycles; a standby polls for the lock. Two leaders may overlap for a moment: every
decision is a compare-and-set in Postgres.
"""

import asyncio
import logging
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from time import monotonic

import psycopg
from psycopg_pool import AsyncConnectionPool

from coordinator import telemetry
from coordinator.coordinator import AWAY, Coordinator, CoordinatorPorts
from coordinator.metrics import GAUGES, CoordinatorMetrics
from coordinator.metrics_collector import POSTGRES, REDIS, MetricsCollector
from coordinator.provider_batches.anthropic_batches import AnthropicAccounts
from coordinator.provider_batches.context import ProviderPorts
from coordinator.script_loader import keep_scripts_loaded
from coordinator.settings import CoordinatorSettings
from eventlog.backoff import Backoff
from eventlog.log import LogUnavailable
from eventlog.outage import Outage, OutageBackoff
from eventlog.redis_streams import RedisEventLog
from eventlog.scripts import Script
from eventlog.signals import stop_event
from eventlog.tasks import end
from projections.database.connection import make_pool
from projections.leader_election.advisory_lock import coordinator_lock, leadership
from projections.ledger.postgres import PostgresLedger
from projections.ledger.provider_batches_postgres import PostgresProviderBatchRepository
from projections.queries.monitoring import BatchMonitor
from taskqueue.backends import Queues, choose, open_queues
from taskqueue.budget.redis_budgets import RedisBudgets
from taskqueue.tasks import QueueUnavailable

logger = logging.getLogger(__name__)

IN_REDIS = (LogUnavailable, QueueUnavailable)
SHUTDOWN_GRACE = 5.0
"""Seconds that a call to a provider may still take at shutdown."""
STANDBY = 1.0
"""Seconds between two tries of a standby to take the leader's lock."""


@dataclass(frozen=True, slots=True)
class CoordinatorConfig:
    """The servers and scripts that a coordinator uses."""

    redis_url: str = field(repr=False)
    postgres_url: str = field(repr=False)
    shards: int
    queue_backend: str = "redis"
    scripts: Sequence[Script] = ()
    """The Lua scripts of executors, kept loaded in Redis."""


async def run(site: CoordinatorConfig, settings: CoordinatorSettings) -> None:
    """Run a coordinator until it receives a signal to stop."""
    stop = stop_event()
    log = RedisEventLog.from_url(site.redis_url, shards=site.shards)
    pool = make_pool(site.postgres_url, size=4)
    await pool.open()
    loader = asyncio.create_task(keep_scripts_loaded(log.redis, site.scripts))
    try:
        coordinator = build(site, settings, log, pool)
        observer = MetricsCollector(
            CoordinatorMetrics(), BatchMonitor(pool, run_id=settings.run_id), _queues(site, log)
        )
        telemetry.begin()
        with GAUGES.registered(observer.view):
            await _until_stopped(coordinator, observer, pool, stop)
    finally:
        await end([loader])
        await pool.close()
        await log.aclose()


def build(
    site: CoordinatorConfig, settings: CoordinatorSettings, log: RedisEventLog, pool: AsyncConnectionPool
) -> Coordinator:
    """Build a coordinator on Redis and Postgres."""
    queues = _queues(site, log)
    ledger = PostgresLedger(pool, shards=site.shards)
    provider = ProviderPorts(
        PostgresProviderBatchRepository(pool), AnthropicAccounts(os.environ), os.environ
    )
    ports = CoordinatorPorts(
        *(log, ledger, queues.tasks, queues.batch_registry, queues.executor_registry),
        budgets=RedisBudgets(log.redis),
        provider=provider,
    )
    return Coordinator(ports, settings=settings)


def _queues(site: CoordinatorConfig, log: RedisEventLog) -> Queues:
    return open_queues(choose(site.queue_backend, fleet=True), log.redis)


SHORTEST_CYCLE = 0.05
"""Seconds between two cycles of a coordinator that was just elected."""
LONGEST_BACKOFF = 0.5
"""The longest delay in seconds between two tries while a server is unavailable."""


async def _until_stopped(
    coordinator: Coordinator, observer: MetricsCollector, pool: AsyncConnectionPool, stop: asyncio.Event
) -> None:
    backoff = OutageBackoff(Outage("Redis or Postgres"), longest=LONGEST_BACKOFF)
    while not stop.is_set():
        try:
            await _lead_while_possible(coordinator, observer, pool, stop, backoff)
        except (*AWAY, psycopg.Error, OSError) as error:
            observer.view.dependencies.missed(REDIS if isinstance(error, IN_REDIS) else POSTGRES)
            await backoff.wait(error)


async def _lead_while_possible(
    coordinator: Coordinator,
    observer: MetricsCollector,
    pool: AsyncConnectionPool,
    stop: asyncio.Event,
    backoff: OutageBackoff,
) -> None:
    async with leadership(pool, coordinator_lock(coordinator.settings.run_id)) as check_held:
        observer.view.dependencies.reached(POSTGRES)
        if check_held is None:
            backoff.succeeded()
            await _pause(stop, STANDBY)
            return
        await coordinator.synchronize()
        logger.info("elected leader", extra={"coordinator": coordinator.settings.name})
        async with _provider_batches(coordinator, stop), _observed(observer):
            elected = monotonic()
            while not stop.is_set():
                await coordinator.run_cycle()
                observer.view.dependencies.reached(REDIS, POSTGRES)
                backoff.succeeded()
                await _pause(stop, cycle_interval(coordinator.settings, led=monotonic() - elected))
                await check_held()


def cycle_interval(settings: CoordinatorSettings, *, led: float) -> float:
    """Return a tenth of the time as leader: the coordinator of a short local run ends its batch at once."""
    return min(settings.cycle_interval.total_seconds(), max(SHORTEST_CYCLE, led / 10))


@asynccontextmanager
async def _observed(observer: MetricsCollector) -> AsyncIterator[None]:
    """Collect metrics while this coordinator leads."""
    task = asyncio.create_task(observer.collect_forever())
    try:
        with observer.view.leading():
            yield
    finally:
        await end([task])


@asynccontextmanager
async def _provider_batches(coordinator: Coordinator, stop: asyncio.Event) -> AsyncIterator[None]:
    """Run the cycles of provider batches in a task of their own while this coordinator leads."""
    task = asyncio.create_task(_run_provider_batches(coordinator, stop))
    try:
        yield
    finally:
        if stop.is_set():  # a submission that completes needs no recovery at the next start
            await asyncio.wait({task}, timeout=SHUTDOWN_GRACE)
        await end([task])


async def _run_provider_batches(coordinator: Coordinator, stop: asyncio.Event) -> None:
    backoff = Backoff(longest=2.0)
    while not stop.is_set() and coordinator.provider_batches:
        try:
            await coordinator.provider_batches.run_cycle()
            backoff.reset()
            await _pause(stop, coordinator.settings.provider.interval.total_seconds())
        except (*AWAY, psycopg.Error, OSError):  # the leader's own cycle logs it
            await _pause(stop, backoff.next())
        except Exception:
            logger.exception("a cycle of provider batches failed")
            await _pause(stop, backoff.next())


async def _pause(stop: asyncio.Event, seconds: float) -> None:
    """Wait so many seconds, or until the process is to stop."""
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return
