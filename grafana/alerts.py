"""All alerts, and the file of rules that Prometheus reads: `make alerts` writes it."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

from grafana.alert import Alert, time
from grafana.alerts_fleet import fleet
from grafana.alerts_providers import providers
from grafana.alerts_storage import storage
from grafana.alerts_work import work
from scoreline.observability.runbook import RUNBOOK
from scoreline.observability.thresholds import Thresholds
from scoreline.settings import load_settings

VALUE = "eval_alert_value"
"""What an alert's expression comes to while it is true, by `alertname`."""
RULES = Path(__file__).parent / "prometheus" / "rules.yml"
HEAD = "# Rendered from grafana/alerts.py by `make alerts`; do not edit.\n"


def alerts(limits: Thresholds) -> tuple[Alert, ...]:
    """List every alert, with these thresholds."""
    return (*fleet(limits), *work(limits), *providers(limits), *storage(limits))


def rules(limits: Thresholds, *, hurry: float = 1, runbook: str = RUNBOOK) -> str:
    """Write the file of rules; in a hurry, whatever must last is that much shorter.

    Each alert's expression is recorded as well: `ALERTS` has no value, and people want to see it.
    """
    listed = alerts(limits)
    values = {"name": "scoreline-alert-values", "rules": [_value(alert) for alert in listed]}
    firing = {"name": "scoreline", "rules": [_rule(alert, hurry, runbook) for alert in listed]}
    document = {"groups": [firing, values]}
    return HEAD + yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def _value(alert: Alert) -> dict[str, Any]:
    return {"record": VALUE, "expr": alert.expression, "labels": {"alertname": alert.name}}


def _rule(alert: Alert, hurry: float, runbook: str) -> dict[str, Any]:
    lasting = {"for": time(alert.lasting / hurry)} if alert.lasting > timedelta() else {}
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **lasting,
        "labels": {"severity": alert.severity.value},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": alert.runbook(runbook),
            "action": alert.action,
        },
    }


class _Dumper(yaml.SafeDumper):
    """Writes expressions of several lines as such."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _text)

if __name__ == "__main__":
    given = load_settings()
    RULES.write_text(rules(given.thresholds, runbook=given.runbook_url or RUNBOOK), encoding="utf-8")
