"""The rules that Prometheus reads: each alert fires when it should, and only then."""

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.alert import Alert
from grafana.alerts import RULES, alerts, rules
from grafana.pages.alert_row import ROW
from scoreline.observability.thresholds import Thresholds
from tests.alerts.cases import BESIDES, CASES, Series

ALERTS: dict[str, Alert] = {alert.name: alert for alert in alerts(Thresholds())}
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")


def test_the_file_is_the_one_that_is_rendered():
    """`make alerts` would change nothing."""
    assert RULES.read_text(encoding="utf-8") == rules(Thresholds())


def test_every_alert_has_its_cases():
    """None was added without series that provoke it, and series that don't."""
    assert set(CASES) == set(ALERTS)
    assert all(case.silent for case in CASES.values())
    assert set(BESIDES) <= set(ALERTS)


@needs_promtool
@pytest.mark.parametrize("hurry", [1, 60])
def test_prometheus_takes_the_rules(hurry: int, tmp_path: Path):
    """Those of every day, and those in a hurry."""
    limits = Thresholds().hurried(hurry, scrape_timeout=timedelta(seconds=10 / hurry))
    file = tmp_path / "rules.yml"
    file.write_text(rules(limits, hurry=hurry), encoding="utf-8")
    ran = subprocess.run(["promtool", "check", "rules", file], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def expected(alert: Alert, labels: dict[str, str], description: str) -> dict[str, Any]:
    action = alert.action
    for label, value in labels.items():
        action = action.replace(f"{{{{ $labels.{label} }}}}", value)
    return {
        "exp_labels": {"severity": alert.severity.value, **labels},
        "exp_annotations": {
            "summary": alert.summary,
            "description": description,
            "runbook_url": alert.runbook(),
            "action": action,
        },
    }


def world(name: str, series: Series) -> dict[str, Any]:
    given = [{"series": each, "values": values} for each, values in series.items()]
    return {"name": name, "interval": "15s", "input_series": given}


def counted(alert: str, at: str, labels: dict[str, str] | None) -> dict[str, Any]:
    """Write: so many of an alert fire, with these labels."""
    query = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    severity = ALERTS[alert].severity.value
    told = {"alertname": alert, "alertstate": "firing", "severity": severity, **(labels or {})}
    name = "ALERTS{" + ",".join(f'{key}="{value}"' for key, value in told.items()) + "}"
    samples = [] if labels is None else [{"labels": name, "value": 1}]
    return {"expr": query, "eval_time": at, "exp_samples": samples}


@needs_promtool
@pytest.mark.parametrize("name", sorted(CASES))
def test_an_alert_fires_when_it_should_and_only_then(name: str, tmp_path: Path):
    """With the words that people will read."""
    case = CASES[name]
    found = {"alertname": name, "eval_time": case.at}
    told = [expected(ALERTS[name], case.labels, case.says)]
    tests = [world("fires", case.fires) | {"alert_rule_test": [found | {"exp_alerts": told}]}]
    for about, (labels, series) in BESIDES.get(name, {}).items():
        tests.append(world(about, series) | {"promql_expr_test": [counted(name, case.at, labels)]})
    for about, series in case.silent.items():
        tests.append(world(about, series) | {"promql_expr_test": [counted(name, case.at, None)]})
    check(tests, tmp_path)


@needs_promtool
def test_active_alerts_are_listed_with_value_and_age(tmp_path: Path):
    """The dashboard's two queries have the same labels, so Grafana merges them into one row an alert."""
    [panel] = [panel for panel in ROW.panels if panel.title == "Active alerts"]
    value, age = (query.text for query in panel.queries)
    labels = 'alertname="BatchStuck",alertstate="firing",batch_id="b",severity="warning"'

    def found(query: str, number: float) -> dict[str, Any]:
        sample = {"labels": "{" + labels + "}", "value": number}
        return {"expr": query, "eval_time": "30m", "exp_samples": [sample]}

    # Idle since the start, and beyond 15 minutes from 15:15 on.
    asked = [found(value, 30 * 60), found(age, 30 * 60 - (15 * 60 + 15))]
    check([world("stuck", CASES["BatchStuck"].fires) | {"promql_expr_test": asked}], tmp_path)


def check(tests: list[dict[str, Any]], folder: Path) -> None:
    file = folder / "tests.yml"
    document = {"rule_files": [str(RULES)], "evaluation_interval": "15s", "tests": tests}
    file.write_text(yaml.safe_dump(document, width=1000), encoding="utf-8")
    ran = subprocess.run(
        ["promtool", "test", "rules", str(file)], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
