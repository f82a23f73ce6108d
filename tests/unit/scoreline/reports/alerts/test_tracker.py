"""Alerts that are tracked from view to view."""

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

from scoreline.observability.alerts.definition import Unit
from scoreline.reports.alerts.tracker import (
    AlertTracker,
    age_of,
    alert_json,
    alert_line,
    alerts_of_one_view,
)
from scoreline.reports.batch_view import BatchView
from tests.unit.scoreline.reports.alerts.views import THRESHOLDS, at


def reported(views: Sequence[BatchView]) -> list[str]:
    tracker = AlertTracker()
    return [alert_line(change) for view in views for change in tracker.update(view)]


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
    message = "0 executors are alive while batches are running; minimum: 1. 1,000 evaluations pending."
    assert line == f"[00:00:20] ALERT AllWorkersDown: {message} → scoreline worker start"
    [change] = alerts_of_one_view(at(0, beats={}), THRESHOLDS)
    assert change.alert.name == "AllWorkersDown"


def test_the_command_for_a_local_run_resumes_it():
    """A local run has its own executors: no executor of a fleet may serve it."""
    [change] = alerts_of_one_view(at(0, beats={}, run_id="r"), THRESHOLDS)
    assert change.alert.action == "scoreline batch resume b"


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
