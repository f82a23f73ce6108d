"""Control of a batch: pause, resume, retry, cancel."""

import asyncio

from rich.console import Console

from projections.queries.batches import BatchSnapshot, read_snapshot
from scoreline.invocation import batch_command
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.settings import Settings
from scoreline.submit.operator import operator

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
