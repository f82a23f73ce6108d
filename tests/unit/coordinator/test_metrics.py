"""The gauges of a coordinator: named batches, the sum of the others, and none without leadership."""

from collections.abc import Iterator
from decimal import Decimal

import pytest

from coordinator.metrics import GAUGES, STALE_AFTER, CoordinatorMetrics, FleetOverview
from projections.folds.progress import Progress
from projections.queries.monitoring import ActiveBatch
from taskqueue.tasks import QueueCounts
from tests.telemetry import measuring

NIGHTLY = ActiveBatch(
    "nightly", 1, 0, 1_700_000_000.0, 42.0, 0.75, is_scored=True,
    progress=Progress(12, completed=4, passed=3, failed=2, timed_out=1, cost_usd=Decimal("1.5")),
)  # fmt: skip
REST = ActiveBatch(
    None, 2, 1, 1_700_000_100.0, 9.0, None, is_scored=True,
    progress=Progress(127, 40, 30, 20, 10, cancelled=7, cost_usd=Decimal(15)),
)  # fmt: skip
OVERVIEW = FleetOverview(
    (NIGHTLY, REST),
    {"nightly": QueueCounts(3, 1), "other": QueueCounts(30)},
    workers=6,
    stuck=8,
    provider_batches=2,
)


class Clock:
    """A clock that the test advances."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def view(clock: Clock) -> Iterator[CoordinatorMetrics]:
    view = CoordinatorMetrics(clock)
    with GAUGES.registered(view):
        yield view


def test_a_leader_reports_named_batches_and_the_sum_of_the_rest(view):
    """Counters add up to `other`; timestamps, ages and ratios do not."""
    with view.leading():
        view.show(OVERVIEW)
        with measuring() as measured:
            pass
    gauge = measured.gauge
    assert [gauge("eval_active_batches", state) for state in ("running", "paused")] == [3, 1]
    states = ("pending", "completed", "failed", "timed_out", "cancelled")
    assert [gauge("eval_batch_evaluations", "nightly", state) for state in states] == [5, 4, 2, 1, 0]
    assert [gauge("eval_batch_evaluations", "other", state) for state in states] == [50, 40, 20, 10, 7]
    added = {"eval_batch_passed": (3, 30), "eval_batch_cost_usd": (1.5, 15), "eval_queue_dlq_size": (3, 30)}
    added |= {"eval_queue_pending_tasks": (3, 30), "eval_queue_owned_tasks": (1, 0)}
    added |= {"eval_queue_owned_tasks": (1, 0)}
    for name, values in added.items():
        assert (gauge(name, "nightly"), gauge(name, "other")) == values
    alone = {"eval_batch_started_timestamp_seconds": 1_700_000_000, "eval_batch_idle_seconds": 42}
    for name, value in (alone | {"eval_batch_budget_spent_ratio": 0.75}).items():
        assert (gauge(name, "nightly"), gauge(name, "other")) == (value, None)
    singles = ("eval_workers_present", "eval_stuck_evaluations", "eval_batch_api_open")
    assert [gauge(name) for name in singles] == [6, 8, 2]
    assert gauge("eval_coordinator_leading") == 1


def test_a_batch_without_budget_has_no_spent_ratio(view):
    """The series is absent, not 0."""
    with view.leading():
        view.show(FleetOverview((NIGHTLY._replace(budget_spent=None),)))
        with measuring() as measured:
            pass
    assert measured.gauge("eval_batch_budget_spent_ratio", "nightly") is None


def test_a_former_leader_reports_nothing(view):
    """Its gauges vanish at once, so they do not contradict those of the new leader."""
    with view.leading():
        view.show(OVERVIEW)
    with measuring() as measured:
        pass
    shown_now = {
        name for name in measured.names if name.startswith(("eval_batch_evaluations", "eval_active"))
    }
    assert shown_now == set()
    assert measured.gauge("eval_coordinator_leading") == 0
    with view.leading(), measuring() as measured:
        pass
    assert measured.gauge("eval_active_batches", "running") is None


def test_an_outdated_overview_is_not_reported(view, clock):
    """A suspended leader may not know yet that another coordinator leads."""
    with view.leading():
        view.show(OVERVIEW)
        clock.now += STALE_AFTER
        assert view.overview is None


def test_an_unavailable_server_is_reported(view):
    """The gauge has the result of the last request."""
    view.dependencies.reached("redis", "postgres")
    view.dependencies.missed("redis")
    with measuring() as measured:
        pass
    assert [measured.gauge("eval_dependency_up", name) for name in ("redis", "postgres")] == [0, 1]
