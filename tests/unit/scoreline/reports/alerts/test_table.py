"""Each alert is defined once."""

import pytest

from scoreline.observability.alerts.rules import EXPRESSIONS
from scoreline.observability.alerts.table import ALERTS
from scoreline.reports.alerts.alert import POSTGRES_DOWN
from scoreline.reports.alerts.checks import BATCH_CHECKS, FLEET_CHECKS
from tests.unit.scoreline.reports.alerts.views import THRESHOLDS


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
