"""The sweep: looks again at what has not moved, so that no lost wake-up and no gap is for ever.

It goes by the tables, and once a minute by SCAN for what has no row (stream_scan.py). One worker does it
at a time, by an advisory lock that its connection holds; for thrift only, as two sweeps would merely do the
same work twice.
"""

import asyncio
import logging

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


async def sweep_forever(
    storage: Storage, pool: AsyncConnectionPool, consumer: Consumer, settings: StorageSettings
) -> None:
    """Sweep whenever this worker is the one to do it, until cancelled."""
    interval = settings.sweep_interval.total_seconds()
    while True:
        await asyncio.sleep(interval)
        try:
            await _lead_while_possible(storage, pool, consumer, settings)
        except (psycopg.Error, RedisError, LogUnavailable, DatabaseUnavailable, OSError) as error:
            logger.warning("the sweep was interrupted", extra={"error": str(error)})


async def _lead_while_possible(
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
