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
from scoreline.thresholds import Thresholds

RULES = Path(__file__).parent / "prometheus" / "rules.yml"
HEAD = "# Rendered from grafana/alerts.py by `make alerts`; do not edit.\n"


def alerts(limits: Thresholds) -> tuple[Alert, ...]:
    """List every alert, with these thresholds."""
    return (*fleet(limits), *work(limits), *providers(limits), *storage(limits))


def rules(limits: Thresholds, *, hurry: float = 1) -> str:
    """Write the file of rules; in a hurry, whatever must last is that much shorter."""
    written = [_rule(alert, hurry) for alert in alerts(limits)]
    document = {"groups": [{"name": "scoreline", "rules": written}]}
    return HEAD + yaml.dump(document, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1000)


def _rule(alert: Alert, hurry: float) -> dict[str, Any]:
    lasting = {"for": time(alert.lasting / hurry)} if alert.lasting > timedelta() else {}
    return {
        "alert": alert.name,
        "expr": alert.expression,
        **lasting,
        "labels": {"severity": alert.severity.value},
        "annotations": {
            "summary": alert.summary,
            "description": alert.description,
            "runbook_url": alert.runbook,
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
    RULES.write_text(rules(Thresholds()), encoding="utf-8")
