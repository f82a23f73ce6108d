"""An alert's definition: one condition and one text for Prometheus and for the command line."""

from datetime import timedelta
from typing import Any

import pytest

from scoreline.observability.alerts.definition import (
    AlertDefinition,
    Condition,
    Polled,
    Severity,
    ThresholdComparison,
    Unit,
    duration,
)
from scoreline.observability.thresholds import Thresholds

THRESHOLDS = Thresholds()
LAG = Condition("lag", Unit.SECONDS, "storage_lag")


def alert(**parts: Any) -> AlertDefinition:
    """Make an alert about the lag of storage."""
    given: dict[str, Any] = {
        "name": "StorageLag",
        "severity": Severity.WARNING,
        "condition": LAG,
        "summary": "lag",
        "message": "{worker_id}: {value} over {window}, threshold {threshold}",
        "action": "scoreline batch status",
        "window": "gap_window",
        **parts,
    }
    return AlertDefinition(**given)


@pytest.mark.parametrize(
    ("comparison", "holding"),
    [
        (ThresholdComparison.ABOVE, [61]),
        (ThresholdComparison.AT_LEAST, [60, 61]),
        (ThresholdComparison.BELOW, [59]),
    ],
)
def test_a_value_is_compared_as_in_promql(comparison: ThresholdComparison, holding: list[int]):
    """A threshold that is a time is compared in seconds."""
    condition = Condition("lag", Unit.SECONDS, "storage_lag", comparison)
    assert [value for value in (59, 60, 61) if condition.holds(value, THRESHOLDS)] == holding
    assert condition.promql("lag", THRESHOLDS) == f"lag {comparison.value} 60"


def test_without_a_threshold_the_expression_decides():
    """A constant threshold needs no setting."""
    alone = Condition("absent", Unit.COUNT, None)
    assert alone.holds(0, THRESHOLDS)
    assert alone.promql("absent(up)", THRESHOLDS) == "absent(up)"
    assert Condition("errors", Unit.COUNT, 0.5).promql("errors", THRESHOLDS) == "errors > 0.5"


def test_placeholders_become_prometheus_templates():
    """Value, threshold and window are known; every other name is a label."""
    assert alert(detail="On {instance}.").description(THRESHOLDS) == (
        "{{ $labels.worker_id }}: {{ $value | humanizeDuration }} over 15m, threshold 60 "
        "On {{ $labels.instance }}."
    )


def test_the_command_line_has_its_own_condition_and_message_where_it_measures_something_else():
    """Otherwise it has those of Prometheus."""
    fields = {"worker_id": "w", "value": "2 min", "window": "15 min", "threshold": "1 min"}
    same = alert(polled=Polled(action="scoreline batch status B"))
    assert same.polled_condition is LAG
    assert same.polled_message(fields) == "w: 2 min over 15 min, threshold 1 min"
    other = Condition("age", Unit.SECONDS, "gap_age")
    own = alert(polled=Polled(action="", condition=other, message="{value} old"))
    assert own.polled_condition is other
    assert own.polled_message(fields) == "2 min old"


def test_a_link_to_the_runbook_has_one_slash():
    """EVAL_RUNBOOK_URL may end with one."""
    assert alert().runbook("https://example.org/runbook/") == "https://example.org/runbook#storagelag"


@pytest.mark.parametrize(
    ("span", "text"),
    [
        (timedelta(hours=2), "2h"),
        (timedelta(minutes=90), "90m"),
        (timedelta(seconds=90), "90s"),
        (timedelta(milliseconds=1_500), "1500ms"),
    ],
)
def test_a_duration_has_the_largest_unit_that_is_whole(span: timedelta, text: str):
    """PromQL accepts no fractions."""
    assert duration(span) == text
