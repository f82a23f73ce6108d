"""`scoreline batch list`: batches, newest first."""

import asyncio
import json
from collections.abc import Collection

from rich.console import Console, RenderableType
from rich.text import Text

from projections.leader_election.advisory_lock import led_runs
from projections.queries.batches import ListedBatch, list_batches
from scoreline.formatting import excerpt, money, printable, span
from scoreline.invocation import batch_command, typed
from scoreline.reports.batch_status import STARTING
from scoreline.reports.pass_rate import listed_pass_rate
from scoreline.reports.screen import screen
from scoreline.reports.table import Column, fitted
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected

NAME_SHOWN = 40


def run_list(
    servers: Servers, *, status: str | None, project: str | None, limit: int, as_json: bool
) -> int:
    """Print the newest batches."""

    async def read(url: str) -> tuple[list[ListedBatch], set[str]]:
        async with connected(url) as conn:
            listed = await list_batches(conn, status=status, project=project, limit=limit)
            return listed, await led_runs(conn, {batch.run_id for batch in listed})

    batches, led = asyncio.run(read(servers.postgres_url))
    if as_json:
        for batch in batches:
            print(json.dumps(_document(batch)))  # noqa: T201 - machines read stdout
    elif batches:
        console = screen()
        console.print(table_of(batches, console.width))
        for batch_id in abandoned(batches, led):
            _note(f"{batch_id}: no process serves it. To continue: {batch_command('resume', batch_id)}")
    else:
        which = " of this kind" if status or project else " yet"
        hint = f"There is no batch{which}. To run one: {typed('batch', 'run', '--help')}"
        Console(stderr=True).print(hint, markup=False, highlight=False, soft_wrap=True)
    return 0


def abandoned(batches: list[ListedBatch], led: Collection[str]) -> list[str]:
    """Return the running batches whose local run has ended."""
    return [
        printable(batch.batch_id)
        for batch in batches
        if batch.status == "running"
        and batch.run_id
        and batch.run_id not in led
        and batch.now - batch.accepted_at > STARTING
    ]


def _note(text: str) -> None:
    Console(stderr=True).print(text, markup=False, highlight=False, soft_wrap=True)


COLUMNS = (
    *(Column(name) for name in ("batch", "name", "project", "status")),
    *(Column(name, is_figure=True) for name in ("done", "passed", "dead letters", "cost", "age")),
)


def table_of(batches: list[ListedBatch], width: int) -> RenderableType:
    """Return a table of batches; one paragraph per batch where the width is too small for the columns."""
    return fitted(COLUMNS, [_cells(batch) for batch in batches], width)


def _cells(batch: ListedBatch) -> list[Text | str]:
    return [
        Text(printable(batch.batch_id)),
        Text(excerpt(batch.name, NAME_SHOWN)),
        Text(excerpt(batch.project, NAME_SHOWN)),
        batch.status,
        f"{batch.progress.ended:,}/{batch.progress.total:,}",
        str(listed_pass_rate(batch)),
        Text(f"{batch.progress.dead_letters:,}", style="red" if batch.progress.dead_letters else ""),
        money(float(batch.spent_usd)),
        span(batch.now - batch.accepted_at),
    ]


def _document(batch: ListedBatch) -> dict[str, object]:
    progress = batch.progress
    return {
        "batch_id": batch.batch_id,
        "name": batch.name,
        "project": batch.project,
        "status": batch.status,
        "total": progress.total,
        "done": progress.ended,
        "completed": progress.completed,
        "passed": progress.passed,
        "failed": progress.failed,
        "timed_out": progress.timed_out,
        "cancelled": progress.cancelled,
        "dead_letters": progress.dead_letters,
        "pass_rate": listed_pass_rate(batch).value,
        "cost_usd": float(progress.cost_usd),
        "spent_usd": float(batch.spent_usd),
        "accepted_at": batch.accepted_at.isoformat(),
        "finished_at": batch.finished_at.isoformat() if batch.finished_at else None,
        "age_s": round((batch.now - batch.accepted_at).total_seconds(), 3),
    }
