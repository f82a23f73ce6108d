"""`scoreline replay --rebuild`: rebuilds a batch's tables from its log, while the batch runs."""

import asyncio
import json
import time
from dataclasses import asdict

from psycopg.errors import InsufficientPrivilege
from rich.console import Console

from projections.database.connection import Connection
from projections.verification.page_workers import processes_for
from projections.verification.pages import read_batch
from projections.verification.rebuild import BrokenLog, RebuildInProgress, RebuildResult, rebuild
from scoreline.command_error import CommandError
from scoreline.formatting import printable
from scoreline.reports.audit.batches import progress_bar, wanted_batches
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.settings import Settings


def run_rebuild(servers: Servers, settings: Settings, batch_id: str | None, *, as_json: bool) -> int:
    """Rebuild one batch or all."""
    try:
        asyncio.run(_rebuild(servers.postgres_url, settings.shards, batch_id, as_json=as_json))
    except (BrokenLog, RebuildInProgress) as refused:
        raise CommandError(printable(str(refused))) from None
    except InsufficientPrivilege as denied:
        reason = str(denied).strip()
        raise CommandError(
            f"This user may not rebuild: {reason}. Try the role scoreline_migrator."
        ) from None
    return 0


async def _rebuild(postgres_url: str, shards: int, batch_id: str | None, *, as_json: bool) -> None:
    async with connected(postgres_url) as conn:
        for each in await wanted_batches(conn, batch_id):
            started = time.perf_counter()
            rebuilt = await _rebuild_one(conn, shards, each)
            show(rebuilt, time.perf_counter() - started, as_json=as_json)


async def _rebuild_one(conn: Connection, shards: int, batch_id: str) -> RebuildResult:
    async with conn.transaction():
        total = (await read_batch(conn, batch_id)).evaluations
    with progress_bar(f"rebuilding {printable(batch_id)}", total) as advance:
        return await rebuild(conn, batch_id, shards=shards, processes=processes_for(total), on_page=advance)


def show(rebuilt: RebuildResult, seconds: float, *, as_json: bool) -> None:
    """Print how many rows of each table the rebuild corrected."""
    if as_json:
        print(json.dumps({**asdict(rebuilt), "seconds": round(seconds, 3)}))  # noqa: T201 - machines read stdout
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    rate = rebuilt.events / seconds if seconds else 0
    console.print(
        f"{printable(rebuilt.batch_id)}: {rebuilt.events:,} events of {rebuilt.evaluations:,} evaluations"
        f" folded anew in {seconds:.1f} s ({rate:,.0f} events/s)"
    )
    corrected = {
        "evaluations": rebuilt.evaluation_rows,
        "scorecards": rebuilt.scorecard_rows,
        "batch_progress": rebuilt.counter_rows,
        "quarantine": rebuilt.quarantine_rows,
    }
    tables = [f"{rows:,} in {table}" for table, rows in corrected.items() if rows]
    console.print(f"✓ rows corrected: {', '.join(tables)}" if tables else "✓ every row matched already")
