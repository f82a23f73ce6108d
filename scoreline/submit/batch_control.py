"""Control of a batch: pause, resume, retry, cancel."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from getpass import getuser

from rich.console import Console

from coordinator.app import CoordinatorConfig, build
from coordinator.coordinator import AWAY
from coordinator.operations import BatchNotFound, OperationRejected, Operator
from coordinator.settings import CoordinatorSettings
from eventlog.redis_streams import RedisEventLog
from projections.database import errors
from projections.database.connection import make_pool
from projections.ledger.postgres import PostgresLedger
from projections.queries.batches import BatchSnapshot, read_snapshot
from scoreline.command_error import CommandError
from scoreline.invocation import batch_command
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.servers.errors import explain
from scoreline.settings import Settings

AT_ONCE = 5_000
"""Evaluations that are cancelled without a notice that this takes a while."""


def run_pause(servers: Servers, settings: Settings, batch_id: str, *, reason: str) -> None:
    """Pause a batch and print how to resume it."""
    asyncio.run(_pause(servers, settings, batch_id, reason))
    resume = batch_command("resume", batch_id)
    _print(f"{batch_id} is paused: running evaluations finish, none is started. To continue: {resume}")


def run_cancel(servers: Servers, settings: Settings, batch_id: str, *, reason: str) -> None:
    """Cancel a batch and print how many of its evaluations ran."""
    ended = asyncio.run(_cancel(servers, settings, batch_id, reason))
    progress = ended.progress
    ran = f"{progress.ended - progress.cancelled:,} of {progress.total:,} evaluations ran"
    _print(f"{batch_id} is cancelled: {ran}, {progress.cancelled:,} were cancelled")


async def _pause(servers: Servers, settings: Settings, batch_id: str, reason: str) -> None:
    async with operator(servers, settings) as asking:
        await asking.pause(batch_id, reason=reason)


async def _cancel(servers: Servers, settings: Settings, batch_id: str, reason: str) -> BatchSnapshot:
    async with operator(servers, settings) as asking:
        batch = await asking.batch(batch_id)
        if (left := batch.progress.pending) > AT_ONCE:
            _print(f"ending {left:,} evaluations of {batch_id}, each on record; this takes a while")
        await asking.cancel(batch_id, reason=reason)
    async with connected(servers.postgres_url) as conn:
        return await read_snapshot(conn, batch_id)


def _print(words: str) -> None:
    Console(stderr=True).print(words, markup=False, highlight=False, soft_wrap=True)


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


def current_user() -> str:
    """Return the login name of the user who runs this command."""
    try:
        return getuser()
    except (KeyError, OSError):  # an id without a name, as containers have it
        return "operator"
