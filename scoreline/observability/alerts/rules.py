"""The rules file that Prometheus reads: `make alerts` writes it."""

from datetime import timedelta
from typing import Any

import yaml

from scoreline.observability.alerts.definition import RUNBOOK, AlertDefinition, duration
from scoreline.observability.alerts.promql_fleet import FLEET
from scoreline.observability.alerts.promql_work import WORK
from scoreline.observability.alerts.table import ALERTS
from scoreline.observability.thresholds import Thresholds

VALUE = "eval_alert_value"
"""The value of an alert's expression while it holds, by `alertname`."""
EXPRESSIONS = {**FLEET, **WORK}
HEAD = "# Rendered from scoreline/observability/alerts by `make alerts`; do not edit.\n"


def rules(thresholds: Thresholds, *, speedup: float = 1, runbook: str = RUNBOOK) -> str:
    """Render the rules; `speedup` divides how long conditions must hold.

    Each alert's expression is recorded as well: `ALERTS` has no value, and dashboards show it.
    """
    values = {
        "name": "scoreline-alert-values",
        "rules": [_value(each, thresholds) for each in ALERTS.values()],
    }
    firing = {
        "name": "scoreline",
        "rules": [_rule(each, thresholds, speedup, runbook) for each in ALERTS.values()],
    }
    document = {"groups": [firing, values]}
    return HEAD + yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def _expression(alert: AlertDefinition, thresholds: Thresholds) -> str:
    return EXPRESSIONS[alert.name](alert, thresholds)


def _value(alert: AlertDefinition, thresholds: Thresholds) -> dict[str, Any]:
    return {"record": VALUE, "expr": _expression(alert, thresholds), "labels": {"alertname": alert.name}}


def _rule(alert: AlertDefinition, thresholds: Thresholds, speedup: float, runbook: str) -> dict[str, Any]:
    hold = {"for": duration(alert.hold / speedup)} if alert.hold > timedelta() else {}
    return {
        "alert": alert.name,
        "expr": _expression(alert, thresholds),
        **hold,
        "labels": {"severity": alert.severity.value},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description(thresholds),
            "runbook_url": alert.runbook(runbook),
            "action": alert.action_template(),
        },
    }


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as blocks."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)
