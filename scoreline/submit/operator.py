"""The operator: changes the state of batches in the name of the current user."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from coordinator.app import CoordinatorConfig, build
from coordinator.coordinator import AWAY
from coordinator.operations import BatchNotFound, OperationRejected, Operator
from coordinator.settings import CoordinatorSettings
from eventlog.redis_streams import RedisEventLog
from projections.database import errors
from projections.database.connection import make_pool
from projections.ledger.postgres import PostgresLedger
from scoreline.command_error import CommandError
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.servers.errors import explain
from scoreline.settings import Settings
from scoreline.submit.current_user import current_user


@asynccontextmanager
async def operator(servers: Servers, settings: Settings) -> AsyncIterator[Operator]:
    """Yield the operator that controls batches in the name of the current user."""
    site = CoordinatorConfig(
        servers.redis_url, servers.postgres_url, settings.shards, settings.queue_backend
    )
    log = RedisEventLog.from_url(servers.redis_url, shards=settings.shards)
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # its errors are reported below
    pool = make_pool(servers.postgres_url, size=2)
    await pool.open()
    try:
        coordinator = build(site, CoordinatorSettings(name=current_user()), log, pool)
        yield Operator(PostgresLedger(pool, shards=settings.shards), coordinator, current_user())
    except BatchNotFound as unknown:
        async with connected(servers.postgres_url):
            raise errors.UnknownBatch(unknown.batch_id) from None  # which names those near it
    except OperationRejected as refused:
        raise CommandError(str(refused)) from refused
    except AWAY as error:
        reason = explain(error) or "A server went away meanwhile."
        raise CommandError(f"{reason} The command is idempotent: try again.") from error
    finally:
        await pool.close()
        await log.aclose()
