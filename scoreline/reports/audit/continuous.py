"""`scoreline replay --verify --follow`: a verifier beside a live fleet.

Every cycle verifies the evaluations whose rows were moved since the last one, on one snapshot; a difference
is reported once. It reads Postgres only, on one connection, and needs no write privilege.
"""

import asyncio
import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from rich.console import Console

from projections.database.connection import Connection
from projections.verification.pages import Since, live_batches
from projections.verification.verify import Difference, VerificationResult, verify
from scoreline.formatting import printable, stamp
from scoreline.reports.audit.verified import Start, start_of
from scoreline.servers.addresses import Servers
from scoreline.servers.connection import connected
from scoreline.settings import Settings

INTERVAL = timedelta(seconds=30)
OVERLAP = timedelta(seconds=5)
"""How long a transaction may be open: `updated_at` is its start, and it is visible only after its end."""


@dataclass(slots=True)
class Cycle:
    """What one cycle verified."""

    at: datetime
    evaluations: int = 0
    events: int = 0
    seconds: float = 0.0
    new: list[tuple[str, Difference]] = field(default_factory=list)
    """Differences that no earlier cycle reported, by batch."""


class ContinuousVerifier:
    """Verifies what changed, cycle by cycle."""

    def __init__(self, conn: Connection, settings: Settings, batch_id: str | None) -> None:
        self._conn = conn
        self._settings = settings
        self._batch_id = batch_id
        self._reported: set[Difference] = set()

    async def run_cycle(self, since: datetime) -> Cycle:
        """Verify the evaluations of all live batches, or of one, whose rows were moved since."""
        async with self._conn.transaction():
            [(now,)] = await (await self._conn.execute("SELECT now()")).fetchall()
            batches = [self._batch_id] if self._batch_id else await live_batches(self._conn, since)
        cycle = Cycle(now)
        started = asyncio.get_running_loop().time()
        for batch_id in batches:
            changed = Since(since, events=False)
            verified = await verify(self._conn, batch_id, shards=self._settings.shards, since=changed)
            self._take(cycle, verified)
        cycle.seconds = asyncio.get_running_loop().time() - started
        return cycle

    def _take(self, cycle: Cycle, verified: VerificationResult) -> None:
        cycle.evaluations += verified.evaluations
        cycle.events += verified.events
        for difference in verified.differences:
            if difference not in self._reported:
                self._reported.add(difference)
                cycle.new.append((verified.batch_id, difference))


def run_continuously(
    servers: Servers, settings: Settings, batch_id: str | None, *, as_json: bool, since: Start
) -> int:
    """Verify until interrupted."""
    return asyncio.run(_run(servers, settings, batch_id, as_json=as_json, since=since))


async def _run(
    servers: Servers, settings: Settings, batch_id: str | None, *, as_json: bool, since: Start
) -> int:
    async with connected(servers.postgres_url) as conn:
        verifier = ContinuousVerifier(conn, settings, batch_id)
        start = await start_of(conn, timedelta(0) if since is None else since)
        while True:
            cycle = await verifier.run_cycle(start - OVERLAP)
            show_cycle(cycle, as_json=as_json)
            start = cycle.at
            await asyncio.sleep(INTERVAL.total_seconds())


def show_cycle(cycle: Cycle, *, as_json: bool) -> None:
    """Print one line for a cycle, and one for each new difference."""
    if as_json:
        print(json.dumps(_document(cycle)), flush=True)  # noqa: T201 - machines read stdout
        return
    console = Console(highlight=False, markup=False, soft_wrap=True)
    for batch_id, difference in cycle.new:
        console.print(f"✗ {printable(batch_id)}: {printable(str(difference))}")
    console.print(
        f"{stamp(cycle.at)}: {cycle.evaluations:,} evaluations, {cycle.events:,} events verified in"
        f" {cycle.seconds:.1f} s, {len(cycle.new):,} new difference(s)"
    )


def _document(cycle: Cycle) -> dict[str, object]:
    return {
        "at": cycle.at.isoformat(),
        "evaluations": cycle.evaluations,
        "events": cycle.events,
        "seconds": round(cycle.seconds, 3),
        "differences": [{"batch_id": batch_id, **each._asdict()} for batch_id, each in cycle.new],
    }
