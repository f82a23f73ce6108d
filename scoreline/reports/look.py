"""One look at a batch: its counters, what waits in it, its variants, and who is there to work on it."""

from dataclasses import dataclass
from datetime import timedelta

from projections.database.connection import Connection
from projections.leader_election.advisory_lock import coordinator_lock, leader_quiet
from projections.queries.batches import (
    BatchSnapshot,
    VariantResult,
    WaitingCount,
    read_snapshot,
    serial_waiting,
    variant_results,
    waiting,
)
from scoreline.reports.checks import QUIET
from scoreline.reports.crew import NOT_ASKED, Crew, CrewReader
from scoreline.reports.labels import VariantLabel, variant_labels
from scoreline.reports.lanes import LaneWait
from scoreline.reports.provider_batches import NOTHING, AtProviders, look_at_providers
from scoreline.reports.report import Report, read_report
from scoreline.reports.standing import is_over, status_word

STARTING = timedelta(seconds=15)
"""How long the processes of a local run may take to start."""


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen of a batch at one moment."""

    snapshot: BatchSnapshot
    waiting: tuple[WaitingCount, ...] = ()
    serial: int = 0
    """Evaluations that wait for an earlier one of their group."""
    variants: tuple[VariantResult, ...] = ()
    labels: tuple[VariantLabel, ...] = ()
    crew: Crew = NOT_ASKED
    at_providers: AtProviders = NOTHING
    lanes: tuple[LaneWait, ...] = ()
    report: Report | None = None
    """Its results, where it is over and was looked at closely."""
    leaderless: bool = False
    """Whether it was seen that no coordinator leads."""

    @property
    def unpublished(self) -> int:
        """Evaluations that executors have not been told of, and that wait for no provider either."""
        elsewhere = self.at_providers.backlog.waiting
        return max(0, self.snapshot.pending - elsewhere - sum(each.count for each in self.waiting))

    @property
    def is_abandoned(self) -> bool:
        """Whether neither a coordinator nor an executor of its local run serves the batch any more."""
        batch, crew = self.snapshot, self.crew
        is_local = bool(batch.run_id) and status_word(batch) == "running"
        is_unserved = self.leaderless and not crew.away and not crew.serving(batch)
        return is_local and is_unserved and batch.now - batch.accepted_at > STARTING


async def take_look(conn: Connection, batch_id: str, crew: CrewReader, *, closely: bool) -> Look:
    """Look at a batch; closely means at every row of it, which takes a second in a large one."""
    async with conn.transaction():
        snapshot = await read_snapshot(conn, batch_id)
        labels = variant_labels(snapshot.spec)
        waits = await waiting(conn, batch_id) if snapshot.pending else []
        serial = await serial_waiting(conn, batch_id) if closely and snapshot.pending else 0
        results = await variant_results(conn, batch_id) if closely and len(labels) > 1 else []
        report = (
            await read_report(conn, snapshot) if closely and is_over(snapshot) and snapshot.done else None
        )
        asked = await look_at_providers(conn, batch_id, snapshot.spec)
        quiet = await leader_quiet(conn, coordinator_lock(snapshot.run_id))
    return Look(
        snapshot,
        tuple(waits),
        serial,
        tuple(results),
        labels,
        crew=await crew.read(),
        at_providers=asked,
        lanes=await crew.lanes(batch_id) if snapshot.pending else (),
        report=report,
        leaderless=quiet is None or quiet > QUIET,
    )
