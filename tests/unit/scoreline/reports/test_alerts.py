"""Alerts of one batch, evaluated from successive views of it."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest

from domain.batch_spec import BatchSpec, TargetSpec, pack
from executor.lanes.contract import BlockedBy, LaneView
from projections.queries.batches import BatchSnapshot, WaitingCount
from projections.queries.provider_batches import ProviderBacklog
from scoreline.observability.alerts.definition import Unit
from scoreline.observability.alerts.rules import EXPRESSIONS
from scoreline.observability.alerts.table import ALERTS
from scoreline.observability.thresholds import Thresholds
from scoreline.reports.alerts.alert import POSTGRES_DOWN, evaluate_alerts, postgres_down
from scoreline.reports.alerts.checks import BATCH_CHECKS, FLEET_CHECKS
from scoreline.reports.alerts.measurement import AlertInputs
from scoreline.reports.alerts.tracker import (
    AlertTracker,
    age_of,
    alert_json,
    alert_line,
    alerts_of_one_view,
)
from scoreline.reports.alerts.window import AlertWindow
from scoreline.reports.batch_view import BatchView
from scoreline.reports.fleet_status import FleetStatus
from scoreline.reports.lanes import LaneWait
from scoreline.reports.provider_batches import AtProviders
from taskqueue.executor_registry import ExecutorInstance
from tests.builders import START

SPEC = pack(BatchSpec("b", (TargetSpec("simulated", "t"),), timeout=60.0)).decode()
RUNNING = BatchSnapshot(
    "b", "submitted", "b", "default", "", "running", "", SPEC, START, None, None, START, total=1000
)
THRESHOLDS = Thresholds()


def at(seconds: float, *, beats: dict[str, float] | None = None, **changes: Any) -> BatchView:
    """Return the view of a batch this long after its start; `beats` are the heartbeats by executor."""
    now = START + timedelta(seconds=seconds)
    known = {"worker-1": seconds} if beats is None else beats
    fleet = FleetStatus(
        tuple(ExecutorInstance(f"i-{name}", name) for name in known), "", _by_instance_id(known)
    )
    own = {key: changes.pop(key) for key in list(changes) if key in BatchView.__dataclass_fields__}
    return BatchView(**{"snapshot": replace(RUNNING, now=now, **changes), "fleet": fleet, **own})


def _by_instance_id(known: dict[str, float]) -> dict[str, float]:
    return {f"i-{name}": beat for name, beat in known.items()}


def firing(*views: BatchView) -> list[str]:
    """Return the names of the alerts that fire for the last of some views."""
    window = AlertWindow.first(views[0])
    for view in views[1:]:
        window = window.after(view, THRESHOLDS)
    return [alert.name for alert in evaluate_alerts(AlertInputs(views[-1], window, THRESHOLDS))]


def reported(views: Sequence[BatchView]) -> list[str]:
    tracker = AlertTracker()
    return [alert_line(change) for view in views for change in tracker.update(view)]


def test_no_alert_fires_for_a_batch_that_makes_progress():
    """A running, a paused and a finished batch fire nothing, whatever their counters are."""
    assert firing(at(0), at(60, completed=50)) == []
    assert firing(at(0), at(9999, state="paused", failed=500, beats={})) == []
    assert firing(at(0), at(9999, finished_at=START, failed=1000, beats={})) == []


def test_an_executor_whose_heartbeats_expire_is_down_and_one_that_deregisters_is_not():
    """An expired heartbeat was overdue before it disappeared; a deregistered one was not."""
    both = {"worker-1": 0.0, "worker-2": 0.0}
    first = at(0, beats=both)
    silent = [at(n, beats={"worker-1": n, "worker-2": 0.0}) for n in range(1, 20)]
    gone = [at(n, beats={"worker-1": n}) for n in range(20, 67)]
    [line] = reported([first, *silent, *gone])
    message = (
        "Executor worker-2 stopped sending heartbeats without deregistering."
        " Other executors reclaim its tasks. Last heartbeat 20 s ago."
    )
    assert line == f"[00:00:20] ALERT WorkerDown: {message} → scoreline worker start"
    assert reported([first, *silent[:3], *gone]) == []
    back = [at(67, beats={"worker-1": 67, "worker-2": 67})]
    assert reported([first, *silent, *gone, *back])[1:] == ["[00:01:07] over: WorkerDown (worker-2)"]


def test_a_condition_that_may_end_with_the_next_view_must_hold():
    """A fleet that starts is not down; one view alone reports at once."""
    alone = [at(n, beats={}) for n in range(30)]
    assert reported([*alone[:20], at(20)]) == []
    [line] = reported(alone)
    message = (
        "0 executors are alive while batches are running; at least 1 are required."
        " 1,000 evaluations pending."
    )
    assert line == f"[00:00:20] ALERT AllWorkersDown: {message} → scoreline worker start"
    [change] = alerts_of_one_view(at(0, beats={}), THRESHOLDS)
    assert change.alert.name == "AllWorkersDown"


def test_the_command_for_a_local_run_resumes_it():
    """A local run has its own executors: no executor of a fleet may serve it."""
    [change] = alerts_of_one_view(at(0, beats={}, run_id="r"), THRESHOLDS)
    assert change.alert.action == "scoreline batch resume b"


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


def test_a_failure_rate_is_that_of_the_last_minutes():
    """Failures at the start of a batch do not fire for ever; failures now do."""
    start = at(0, failed=10, completed=10)
    then = [at(60 * n, failed=10, completed=10 + 20 * n) for n in range(1, 20)]
    assert firing(start) == ["HighFailureRate"]
    assert firing(start, *then) == []
    assert firing(start, *then, at(1260, failed=150, completed=390)) == ["DLQGrowing", "HighFailureRate"]


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


def test_every_alert_is_evaluated_by_prometheus_and_where_possible_by_the_command_line():
    """No side has an alert that the other lacks, but for those that only Prometheus can measure."""
    assert EXPRESSIONS.keys() == ALERTS.keys()
    checked = FLEET_CHECKS.keys() | BATCH_CHECKS.keys() | {POSTGRES_DOWN}
    assert checked == {name for name, alert in ALERTS.items() if alert.polled}
    assert all(bool(alert.polled) is not bool(alert.prometheus_only) for alert in ALERTS.values())
    assert len(checked) == 13


@pytest.mark.parametrize("name", ALERTS)
def test_thresholds_of_definitions_exist(name: str):
    """A threshold, window or hold that a definition names is one of the settings."""
    alert = ALERTS[name]
    named = [alert.window, alert.polled.hold if alert.polled else ""]
    assert [each for each in named if each and not hasattr(THRESHOLDS, each)] == []
    for condition in (alert.condition, alert.polled_condition):
        limit = condition.limit(THRESHOLDS)
        assert limit is None or condition.holds(limit + 1, THRESHOLDS) is not condition.holds(
            limit - 1, THRESHOLDS
        )


def test_an_alert_has_its_value_its_threshold_and_its_age():
    """The age is known where one view has the time since which the condition holds."""
    view = at(1000, failed=40, completed=60, beats={})
    changes = alerts_of_one_view(view, replace(THRESHOLDS, dead_letters=30))
    workers, letters, share = (each.alert for each in changes)
    assert (workers.value, workers.threshold, workers.unit) == (0, 1, Unit.COUNT)
    assert (letters.value, letters.threshold, letters.unit) == (40, 30, Unit.COUNT)
    assert (share.value, share.threshold, share.unit) == (0.4, 0.1, Unit.SHARE)
    assert age_of(changes[1]) is None
    [stuck] = alerts_of_one_view(at(901), THRESHOLDS)
    assert (stuck.alert.value, stuck.alert.threshold, stuck.alert.unit) == (901, 900, Unit.SECONDS)
    assert age_of(stuck) == timedelta(seconds=901)


def test_a_tracked_alert_has_the_age_of_its_condition():
    """The age counts from the view for which the condition first held, reported or not."""
    tracker = AlertTracker()
    [change] = [each for n in range(21) for each in tracker.update(at(n, beats={}))]
    assert age_of(change) == timedelta(seconds=20)
    line = json.loads(alert_json(change, "https://runbook.example/operations.md"))
    assert (line["severity"], line["value"], line["threshold"], line["age_seconds"]) == (
        "critical",
        0,
        1,
        20,
    )
    assert line["runbook"] == "https://runbook.example/operations.md#allworkersdown"


def test_an_unreachable_database_is_an_alert_without_a_view():
    """The alert is built without a view, since none can be read."""
    alert = postgres_down()
    assert alert.message.startswith("PostgreSQL is unreachable: ")
    assert (alert.action, alert.value, alert.threshold) == ("scoreline batch list", 0, 1)
