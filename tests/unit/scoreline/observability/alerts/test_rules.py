"""The rendered rules: each alert fires after its hold time, and its value is recorded."""

from typing import Any

import yaml

from scoreline.observability.alerts.definition import duration
from scoreline.observability.alerts.rules import HEAD, VALUE, rules
from scoreline.observability.alerts.table import ALERTS
from scoreline.observability.thresholds import Thresholds


def rendered(**options: Any) -> dict[str, list[dict[str, Any]]]:
    """Return the rules of both groups."""
    document = yaml.safe_load(rules(Thresholds(), **options))
    return {group["name"]: group["rules"] for group in document["groups"]}


def test_each_alert_has_a_rule_and_a_recorded_value_of_the_same_expression():
    """Dashboards show the value, which `ALERTS` has not."""
    groups = rendered()
    firing, values = groups["scoreline"], groups["scoreline-alert-values"]
    assert [rule["alert"] for rule in firing] == list(ALERTS)
    assert {rule["record"] for rule in values} == {VALUE}
    assert [rule["labels"]["alertname"] for rule in values] == list(ALERTS)
    assert [rule["expr"] for rule in firing] == [rule["expr"] for rule in values]


def test_hold_times_are_divided_by_the_speedup():
    """An alert without one fires at once, and has no `for`."""
    for speedup in (1, 60):
        holds = {rule["alert"]: rule.get("for") for rule in rendered(speedup=speedup)["scoreline"]}
        assert holds == {
            name: duration(alert.hold / speedup) if alert.hold else None for name, alert in ALERTS.items()
        }
    assert None in holds.values()
    assert set(holds.values()) != {None}


def test_links_lead_to_the_published_runbook():
    """Every rule has its own section."""
    links = [
        rule["annotations"]["runbook_url"] for rule in rendered(runbook="https://x.org/r")["scoreline"]
    ]
    assert links == [f"https://x.org/r#{name.lower()}" for name in ALERTS]


def test_expressions_of_several_lines_are_blocks():
    """The file is read by people as well, and starts with the notice that it is rendered."""
    text = rules(Thresholds())
    assert text.startswith(HEAD)
    assert "expr: |" in text
    assert "\\n" not in text
