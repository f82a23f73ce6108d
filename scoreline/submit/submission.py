"""Submission of a batch: from a plan to an accepted batch."""

import logging
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from random import SystemRandom

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn

from coordinator.acceptance import accept
from coordinator.submission import NewEvaluation
from domain.ids import FLEET
from projections.database.connection import make_pool
from projections.database.errors import DatabaseUnavailable
from projections.ledger.batch import NewBatch
from projections.ledger.postgres import PostgresLedger
from scoreline.command_error import CommandError
from scoreline.servers.addresses import Servers
from scoreline.servers.errors import explain
from scoreline.settings import Settings
from scoreline.submit.current_user import current_user
from scoreline.submit.evaluations import prepared
from scoreline.submit.spec.plan import Plan

ALPHABET = "abcdefghjkmnpqrstuvwxyz23456789"
"""Letters and digits that are not easily confused."""


async def submit(  # noqa: PLR0913 - a plan, a place, a run
    plan: Plan,
    servers: Servers,
    settings: Settings,
    console: Console,
    *,
    run_id: str = FLEET,
    check: Callable[[], None] = lambda: None,
) -> tuple[str, int]:
    """Accept a batch whole, or not at all; returns its id and how many evaluations it has.

    What `check` raises, before any evaluation, leaves nothing behind.
    """
    logging.getLogger("psycopg").addHandler(logging.NullHandler())  # its errors are reported below
    pool = make_pool(servers.postgres_url, size=2)
    await pool.open()
    try:
        ledger = PostgresLedger(pool, shards=settings.shards)
        async with prepared(plan, postgres_url=servers.postgres_url) as submission:
            batch = _new_batch(submission.plan, settings, run_id)
            with _counting(console) as count:
                read = _counted(submission.evaluations(), count, check)
                now = await ledger.now()
                total = await accept(ledger, batch, read, now=now, shards=settings.shards)
            return batch.batch_id, total
    except DatabaseUnavailable as error:
        reason = explain(error) or "PostgreSQL went away."
        raise CommandError(
            f"{reason} The batch was accepted whole or not at all: see scoreline batch list."
        ) from error
    finally:
        await pool.close()


def _new_batch(plan: Plan, settings: Settings, run_id: str) -> NewBatch:
    return replace(
        plan.batch,
        batch_id=new_batch_id(plan.spec.name),
        submitted_by=current_user(),
        traced=settings.trace_ratio,
        run_id=run_id,
    )


def new_batch_id(name: str) -> str:
    """Make a readable id: the batch's name and a random suffix."""
    slug = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")[:40] or "batch"
    chance = SystemRandom()
    return f"{slug}-{''.join(chance.choices(ALPHABET, k=6))}"


class _counting:  # noqa: N801 - a context, used like a function
    """Shows how many evaluations have been read."""

    def __init__(self, console: Console) -> None:
        self._progress = Progress(
            SpinnerColumn(),
            TextColumn("accepting"),
            BarColumn(),
            MofNCompleteColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )

    def __enter__(self) -> Callable[[int], None]:
        self._progress.start()
        task = self._progress.add_task("accepting", total=None)
        return lambda count: self._progress.update(task, completed=count)

    def __exit__(self, *_: object) -> None:
        self._progress.stop()


async def _counted(
    read: AsyncIterator[NewEvaluation],
    count: Callable[[int], None],
    check: Callable[[], None],
    every: int = 500,
) -> AsyncIterator[NewEvaluation]:
    number = 0
    async for one in read:
        check()
        number += 1
        if number % every == 0:
            count(number)
        yield one
    count(number)
