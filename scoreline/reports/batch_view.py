"""A view of a batch: its counters, waiting evaluations, variants, and the executors that serve it."""

from dataclasses import dataclass

from projections.database.connection import Connection
from projections.leader_election.advisory_lock import QUIET, coordinator_lock, leader_quiet
from projections.queries.batches import (
    BatchSnapshot,
    VariantResult,
    WaitingCount,
    read_snapshot,
    serial_waiting,
    variant_results,
    waiting,
)
from scoreline.reports.batch_status import STARTING, is_over, status_word
from scoreline.reports.fleet_status import FLEET_NOT_READ, FleetReader, FleetStatus
from scoreline.reports.labels import VariantLabel, variant_labels
from scoreline.reports.lanes import LaneWait
from scoreline.reports.provider_batches import NOTHING, AtProviders, read_provider_batches
from scoreline.reports.report import Report, read_report


@dataclass(frozen=True, slots=True)
class BatchView:
    """A batch at one moment."""

    snapshot: BatchSnapshot
    waiting: tuple[WaitingCount, ...] = ()
    serial: int = 0
    """Evaluations that wait for an earlier one of their group."""
    variants: tuple[VariantResult, ...] = ()
    labels: tuple[VariantLabel, ...] = ()
    fleet: FleetStatus = FLEET_NOT_READ
    at_providers: AtProviders = NOTHING
    lanes: tuple[LaneWait, ...] = ()
    report: Report | None = None
    """Its results, where it is over and every row was read."""
    leaderless: bool = False
    """Whether no coordinator holds the leader lock."""

    @property
    def unpublished(self) -> int:
        """Evaluations that are neither published to executors nor at a provider."""
        elsewhere = self.at_providers.backlog.waiting
        return max(0, self.snapshot.progress.pending - elsewhere - sum(each.count for each in self.waiting))

    @property
    def is_abandoned(self) -> bool:
        """Whether neither a coordinator nor an executor of its local run serves the batch any more."""
        batch, fleet = self.snapshot, self.fleet
        is_local = bool(batch.run_id) and status_word(batch) == "running"
        is_unserved = self.leaderless and not fleet.unavailable and not fleet.serving(batch)
        return is_local and is_unserved and batch.now - batch.accepted_at > STARTING


async def read_batch_view(
    conn: Connection, batch_id: str, fleet: FleetReader, *, every_row: bool
) -> BatchView:
    """Read a batch; `every_row` reads each of its rows, which takes a second in a large one."""
    async with conn.transaction():
        snapshot = await read_snapshot(conn, batch_id)
        labels = variant_labels(snapshot.spec)
        waits = await waiting(conn, batch_id) if snapshot.progress.pending else []
        serial = await serial_waiting(conn, batch_id) if every_row and snapshot.progress.pending else 0
        results = await variant_results(conn, batch_id) if every_row and len(labels) > 1 else []
        report = (
            await read_report(conn, snapshot)
            if every_row and is_over(snapshot) and snapshot.progress.ended
            else None
        )
        at_providers = await read_provider_batches(conn, batch_id, snapshot.spec)
        quiet = await leader_quiet(conn, coordinator_lock(snapshot.run_id))
    return BatchView(
        snapshot,
        tuple(waits),
        serial,
        tuple(results),
        labels,
        fleet=await fleet.read(),
        at_providers=at_providers,
        lanes=await fleet.lanes(batch_id) if snapshot.progress.pending else (),
        report=report,
        leaderless=quiet is None or quiet > QUIET,
    )
