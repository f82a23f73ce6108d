"""The conditions of alerts, checked on views of a batch."""

from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from executor.lanes.contract import BlockedBy, LaneView
from projections.queries.batches import WaitingCount
from projections.queries.provider_batches import ProviderBacklog
from scoreline.reports.batch_view import BatchView
from scoreline.reports.fleet_status import FleetStatus
from scoreline.reports.lanes import LaneWait
from scoreline.reports.provider_batches import AtProviders
from taskqueue.executor_registry import ExecutorInstance
from tests.builders import START
from tests.unit.scoreline.reports.alerts.views import at, firing


def test_executors_of_another_project_do_not_count():
    """AllWorkersDown fires, since executors of other projects claim no task of this batch."""
    fleet = FleetStatus((ExecutorInstance("i", "other", project="another"),))
    assert firing(at(0, fleet=fleet)) == ["AllWorkersDown"]


def test_an_unreachable_redis_and_a_missing_leader_each_fire_one_alert():
    """While Redis is unreachable, executors are unknown, not down."""
    away = FleetStatus(unavailable="Redis at x does not answer (connection refused).")
    assert firing(at(0), at(1, fleet=away)) == ["RedisDown"]
    assert firing(at(0), at(1, leaderless=True)) == ["CoordinatorDown"]


HELD = WaitingCount("running", 3, START, "b.1")


@pytest.mark.parametrize(
    ("view", "names"),
    [
        (at(901), ["BatchStuck"]),
        (at(899), []),
        (at(901, completed=1), []),
        (at(901, waiting=(replace(HELD, unmoved_since=START + timedelta(seconds=850)),)), []),
        (at(901, at_providers=AtProviders((), ProviderBacklog(waiting=1000))), []),
        (at(901, waiting=(HELD,)), ["BatchStuck"]),
        (at(961, waiting=(HELD,)), ["BatchStuck", "StuckEvaluations"]),
    ],
    ids=["idle", "not long", "progress", "claimed, in time", "at a provider", "overdue", "stuck"],
)
def test_a_batch_is_stuck_when_no_evaluation_ends(view: BatchView, names: list[str]):
    """A long batch is not stuck, nor one whose attempts are within their deadline."""
    assert firing(at(0), view) == names


@pytest.mark.parametrize(
    ("dead", "completed", "names"),
    [
        (9, 91, []),
        (10, 90, []),
        (11, 89, ["DLQGrowing", "HighFailureRate"]),
        (11, 200, ["DLQGrowing"]),
        (3, 3, []),
        (5, 15, ["HighFailureRate"]),
    ],
)
def test_failures_are_measured_as_a_share_and_as_a_count(dead: int, completed: int, names: list[str]):
    """No share is measured over few evaluations."""
    assert firing(at(0), at(60, failed=dead, completed=completed)) == names


def test_a_backlog_is_a_time_and_not_a_count():
    """A long queue that drains fast does not fire."""
    many = (WaitingCount("queued", 900, START, "b.9"),)
    assert firing(at(0), at(100, completed=20, waiting=many)) == ["QueueBacklog"]
    assert firing(at(0), at(100, completed=100, waiting=many)) == []
    assert firing(at(0), at(30, completed=1, waiting=many)) == []


def test_an_open_breaker_and_a_saturated_lane_fire():
    """An open circuit breaker fires at once; a lane fires once tasks have waited for its rate limit."""

    def behind(count: int, **view: Any) -> BatchView:
        return at(100, completed=99, lanes=(LaneWait(LaneView("openai", **view), count),))

    since = START.timestamp()
    assert firing(behind(0, breaker="open", failures=5)) == ["BreakerOpen"]
    assert firing(behind(3, blocked_by=BlockedBy.RATE, since=since)) == ["RateLimitSaturation"]
    assert firing(behind(0, blocked_by=BlockedBy.RATE, since=since)) == []
    assert firing(behind(3, blocked_by=BlockedBy.RATE, since=since + 80)) == []
    assert firing(behind(3, blocked_by=BlockedBy.CONCURRENCY, since=since)) == []


@pytest.mark.parametrize(
    ("spent", "names"),
    [
        ({"max_cost_usd": Decimal(1), "cost_usd": Decimal("0.91")}, ["BudgetNearlySpent"]),
        ({"max_cost_usd": Decimal(1), "cost_usd": Decimal("0.9")}, []),
        ({"max_tokens": 100, "tokens": 95, "max_cost_usd": Decimal(1)}, ["BudgetNearlySpent"]),
        ({"tokens": 95}, []),
    ],
)
def test_a_budget_fires_by_the_larger_share_of_cost_and_tokens(spent: dict[str, Any], names: list[str]):
    """The larger of both shares is compared with the threshold; without a limit nothing fires."""
    assert firing(at(10, completed=5, **spent)) == names
