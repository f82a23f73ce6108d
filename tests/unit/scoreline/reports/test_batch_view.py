"""The view of a batch: unpublished evaluations, and an abandoned local run."""

from datetime import timedelta

import pytest

from projections.queries.batches import WaitingCount
from projections.queries.provider_batches import ProviderBacklog
from scoreline.reports.batch_status import STARTING
from scoreline.reports.batch_view import BatchView
from scoreline.reports.fleet_status import FleetStatus
from scoreline.reports.provider_batches import AtProviders
from scoreline.reports.stall_reasons import reasons
from taskqueue.executor_registry import ExecutorInstance
from tests.builders import START
from tests.unit.scoreline.reports.snapshots import NOW, abandoned, make_snapshot


@pytest.mark.parametrize(
    "view",
    [
        BatchView(
            make_snapshot(run_id="r", now=START + timedelta(seconds=14)),
            fleet=FleetStatus(),
            leaderless=True,
        ),
        BatchView(make_snapshot(run_id="r"), fleet=FleetStatus()),
        BatchView(
            make_snapshot(run_id="r"),
            fleet=FleetStatus((ExecutorInstance("i-1", "one", run_id="r"),)),
            leaderless=True,
        ),
        BatchView(
            make_snapshot(run_id="r"), fleet=FleetStatus(unavailable="Redis is away."), leaderless=True
        ),
        BatchView(make_snapshot(), fleet=FleetStatus(), leaderless=True),
    ],
    ids=["starting", "led", "with an executor", "redis away", "of the fleet"],
)
def test_a_run_is_abandoned_only_if_nothing_of_it_is_alive(view: BatchView) -> None:
    """A run that starts, leads, executes, or whose state is unknown is not abandoned."""
    assert not view.is_abandoned
    assert not any("batch resume" in reason for reason in reasons(view) if view.snapshot.run_id)


def test_a_local_run_without_processes_is_abandoned_after_the_time_of_a_start() -> None:
    """Only a running batch is; one that is paused is resumed by its own command."""
    assert not abandoned(now=START + STARTING).is_abandoned
    assert abandoned(now=START + STARTING + timedelta(seconds=1)).is_abandoned
    assert not abandoned(state="paused").is_abandoned


def test_unpublished_evaluations_are_neither_waiting_nor_at_a_provider() -> None:
    """Counters that were read a moment later never make the number negative."""
    waits = (WaitingCount("queued", 20, NOW, "b.00000001"), WaitingCount("running", 5, NOW, "b.00000002"))
    at_providers = AtProviders(backlog=ProviderBacklog(waiting=30))
    snapshot = make_snapshot(completed=40)
    assert BatchView(snapshot, waits, at_providers=at_providers).unpublished == 100 - 40 - 25 - 30
    assert BatchView(make_snapshot(completed=90), waits).unpublished == 0
