"""`scoreline replay --verify`: compares a batch's tables with its log, column by column."""

import asyncio
import json
import shlex
import time
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta

from rich.console import Console

from projections.database.connection import Connection
from projections.verification.page_workers import processes_for
from projections.verification.pages import Since, read_batch
from projections.verification.verify import VerificationResult, verify
from scoreline.formatting import printable, stamp
from scoreline.invocation import as_started
from scoreline.reports.audit.batches import progress_bar, wanted_batches
from scoreline.reports.audit.unfinished import Pending, why_unfinished
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.settings import Settings

SHOWN = 20
MATCHES = "✓ every row of every table matches the log"
MATCHES_SINCE = (
    "✓ every row of these evaluations matches the log (counters and deleted rows: without --since)"
)


@dataclass(frozen=True, slots=True)
class Finding:
    """The verification of one batch, its duration, and the evaluations that have not ended."""

    verified: VerificationResult
    seconds: float
    pending: list[Pending]
    since: datetime | None = None
    """Only evaluations that changed since were verified."""


Start = timedelta | datetime | None
"""An age by Postgres' clock, or a time; None verifies everything."""


def run_verify(
    servers: Servers, settings: Settings, batch_id: str | None, *, as_json: bool, since: Start = None
) -> int:
    """Verify one batch or all; returns 1 where anything differs."""
    return int(asyncio.run(_verify(settings, servers, batch_id, as_json=as_json, since=since)) > 0)


async def _verify(
    settings: Settings, servers: Servers, batch_id: str | None, *, as_json: bool, since: Start
) -> int:
    """Verify batch by batch, and print each result at once; returns how many batches differ."""
    differing = 0
    async with connected(servers.postgres_url) as conn:
        start = await start_of(conn, since) if since is not None else None
        for each in await wanted_batches(conn, batch_id):
            finding = await _verify_one(conn, settings, servers, each, since=start)
            differing += finding.verified.differing > 0
            if as_json:
                print(json.dumps(_document(finding)), flush=True)  # noqa: T201 - machines read stdout
            else:
                show(Console(highlight=False, markup=False, soft_wrap=True), finding)
    return differing


async def start_of(conn: Connection, since: timedelta | datetime) -> datetime:
    """Turn an age into a time of Postgres' clock."""
    if isinstance(since, datetime):
        return since
    async with conn.transaction():
        [(start,)] = await (await conn.execute("SELECT now() - %s", [since])).fetchall()
    return start  # type: ignore[no-any-return]  # as the driver has it


async def _verify_one(
    conn: Connection, settings: Settings, servers: Servers, batch_id: str, *, since: datetime | None
) -> Finding:
    async with conn.transaction():
        total = (await read_batch(conn, batch_id)).evaluations
    started = time.perf_counter()
    with progress_bar(f"verifying {printable(batch_id)}", total) as advance:
        verified = await verify(
            *(conn, batch_id),
            shards=settings.shards,
            processes=1 if since else processes_for(total),
            since=Since(since) if since else None,
            on_page=advance,
        )
    took = time.perf_counter() - started
    pending = await why_unfinished(settings, servers, batch_id) if verified.open else []
    return Finding(verified, took, pending, since)


def show(console: Console, finding: Finding) -> None:
    """Print the differences, then the evaluations that have not ended."""
    verified = finding.verified
    what = f" changed since {stamp(finding.since)}" if finding.since else ""
    rate = verified.events / finding.seconds if finding.seconds else 0
    console.print(
        f"{printable(verified.batch_id)}: {verified.evaluations:,} evaluations{what},"
        f" {verified.events:,} events, checked in {finding.seconds:.1f} s ({rate:,.0f} events/s)"
    )
    if verified.differing:
        console.print(f"✗ {verified.differing:,} difference(s) between the tables and the log:")
        for difference in verified.differences[:SHOWN]:
            console.print(f"  {printable(str(difference))}")
        if verified.differing > SHOWN:
            console.print(f"  … and {verified.differing - SHOWN:,} more")
        console.print(_advice(verified))
    else:
        console.print(MATCHES_SINCE if finding.since else MATCHES)
    _show_pending(console, verified.open, finding.pending)


def _advice(verified: VerificationResult) -> str:
    if not all(difference.is_mendable for difference in verified.differences):
        return "Recorded events were altered, which no rebuild can correct: restore them from a backup."
    batch = shlex.quote(printable(verified.batch_id))
    return as_started(f"To rebuild the tables: scoreline replay --batch {batch} --rebuild")


def _show_pending(console: Console, count: int, pending: list[Pending]) -> None:
    if not count:
        console.print("✓ every evaluation has ended")
        return
    console.print(f"· {count:,} evaluation(s) have not ended:")
    for each in pending:
        console.print(f"  {printable(each.evaluation_id)}  {each.state}: {each.why}")
    if count > len(pending):
        console.print(f"  … and {count - len(pending):,} more")


def _document(finding: Finding) -> dict[str, object]:
    verified = finding.verified
    return {
        "batch_id": verified.batch_id,
        "ok": not verified.differing,
        **({"since": finding.since.isoformat()} if finding.since else {}),
        "evaluations": verified.evaluations,
        "events": verified.events,
        "seconds": round(finding.seconds, 3),
        "differing": verified.differing,
        "differences": [difference._asdict() for difference in verified.differences],
        "open": verified.open,
        "pending": [asdict(each) for each in finding.pending],
    }
