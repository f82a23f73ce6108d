"""`make alerts`: write the rules file of Prometheus with the thresholds of the environment."""

from pathlib import Path

import grafana
from scoreline.observability.alerts.definition import RUNBOOK
from scoreline.observability.alerts.rules import rules
from scoreline.settings import load_settings

RULES = Path(grafana.__file__).with_name("prometheus") / "rules.yml"

if __name__ == "__main__":
    settings = load_settings()
    RULES.write_text(rules(settings.thresholds, runbook=settings.runbook_url or RUNBOOK), encoding="utf-8")
