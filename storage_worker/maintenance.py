"""Background loops of a storage worker: the sweep, and the takeover of a dead worker's wake-ups.

The sweep stores again every evaluation that has not changed for a while, so that no lost wake-up and no gap
lasts for ever; once a minute it scans the key space for streams that no row leads to (stream_scan.py).
Leader election by an advisory lock lets one worker sweep at a time. That saves work only: two sweeps would
be idempotent.
"""

import asyncio
import logging
from datetime import timedelta

import psycopg
from psycopg_pool import AsyncConnectionPool
from redis.exceptions import RedisError

from eventlog.log import LogUnavailable
from projections.database.errors import DatabaseUnavailable
from projections.leader_election.advisory_lock import leadership
from storage_worker.consumer import Consumer
from storage_worker.settings import StorageSettings
from storage_worker.storage import Storage

logger = logging.getLogger(__name__)

LOCK = 7_265_002
PAGE = 1_000
TAKE_OVER_COUNT = 500
"""Wake-ups claimed from dead workers at a time, so that new ones are not delayed for long."""


async def sweep_forever(
    storage: Storage, pool: AsyncConnectionPool, consumer: Consumer, settings: StorageSettings
) -> None:
    """Sweep whenever this worker is the leader, until cancelled."""
    interval = settings.sweep_interval.total_seconds()
    while True:
        await asyncio.sleep(interval)
        try:
            await _sweep_while_leader(storage, pool, consumer, settings)
        except (psycopg.Error, RedisError, LogUnavailable, DatabaseUnavailable, OSError) as error:
            logger.warning("sweep interrupted: retrying after the interval", extra={"error": str(error)})


async def _sweep_while_leader(
    storage: Storage, pool: AsyncConnectionPool, consumer: Consumer, settings: StorageSettings
) -> None:
    interval = settings.sweep_interval.total_seconds()
    async with leadership(pool, LOCK) as holds:
        while holds:
            await storage.sweep(unchanged_for=interval, page=PAGE)
            await consumer.trim()
            await consumer.scan.run_if_due(settings.scan_interval)
            await asyncio.sleep(interval)
            await holds()


async def take_over_forever(consumer: Consumer, idle: timedelta) -> None:
    """Claim the wake-ups of dead workers until cancelled."""
    while True:
        await asyncio.sleep(idle.total_seconds() / 3)
        try:
            await consumer.claim_stalled(idle_ms=int(idle.total_seconds() * 1000), count=TAKE_OVER_COUNT)
        except (RedisError, OSError) as error:
            logger.debug("could not claim pending wake-ups", extra={"error": str(error)})
