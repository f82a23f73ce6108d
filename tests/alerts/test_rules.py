"""The rules that Prometheus reads: each alert fires with its series, and with no others."""

import shutil
import subprocess
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.pages.alert_row import ROW
from scoreline.local.alert_rules import RULES
from scoreline.observability.alerts.definition import AlertDefinition
from scoreline.observability.alerts.rules import rules
from scoreline.observability.alerts.table import ALERTS
from scoreline.observability.thresholds import Thresholds
from tests.alerts.cases import ALSO_FIRES, CASES, Series

needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")


def test_the_rules_file_is_the_rendered_one():
    """`make alerts` would change nothing."""
    assert RULES.read_text(encoding="utf-8") == rules(Thresholds())


def test_every_alert_has_its_cases():
    """Series with which it fires, and series with which it does not."""
    assert set(CASES) == set(ALERTS)
    assert all(case.silent for case in CASES.values())
    assert set(ALSO_FIRES) <= set(ALERTS)


@needs_promtool
@pytest.mark.parametrize("speedup", [1, 60])
def test_prometheus_accepts_the_rules(speedup: int, tmp_path: Path):
    """The shipped ones, and the accelerated ones of the scenario."""
    thresholds = Thresholds().accelerated(speedup, scrape_timeout=timedelta(seconds=10 / speedup))
    file = tmp_path / "rules.yml"
    file.write_text(rules(thresholds, speedup=speedup), encoding="utf-8")
    ran = subprocess.run(["promtool", "check", "rules", file], check=False, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr


def expected(alert: AlertDefinition, labels: dict[str, str], description: str) -> dict[str, Any]:
    return {
        "exp_labels": {"severity": alert.severity.value, **labels},
        "exp_annotations": {
            "summary": alert.summary,
            "description": description,
            "runbook_url": alert.runbook(),
            "action": alert.action.format_map(labels),
        },
    }


def world(name: str, series: Series) -> dict[str, Any]:
    inputs = [{"series": each, "values": values} for each, values in series.items()]
    return {"name": name, "interval": "15s", "input_series": inputs}


def firing(alert: str, at: str, labels: dict[str, str] | None) -> dict[str, Any]:
    """Expect an alert to fire with these labels; None expects it not to."""
    query = f'ALERTS{{alertname="{alert}",alertstate="firing"}}'
    severity = ALERTS[alert].severity.value
    series = {"alertname": alert, "alertstate": "firing", "severity": severity, **(labels or {})}
    name = "ALERTS{" + ",".join(f'{key}="{value}"' for key, value in series.items()) + "}"
    samples = [] if labels is None else [{"labels": name, "value": 1}]
    return {"expr": query, "eval_time": at, "exp_samples": samples}


@needs_promtool
@pytest.mark.parametrize("name", sorted(CASES))
def test_an_alert_fires_with_its_series_and_with_no_others(name: str, tmp_path: Path):
    """And its annotations are the texts that operators read."""
    case = CASES[name]
    rule = {"alertname": name, "eval_time": case.at}
    alerts = [expected(ALERTS[name], case.labels, case.description)]
    tests = [world("fires", case.fires) | {"alert_rule_test": [rule | {"exp_alerts": alerts}]}]
    for about, (labels, series) in ALSO_FIRES.get(name, {}).items():
        tests.append(world(about, series) | {"promql_expr_test": [firing(name, case.at, labels)]})
    for about, series in case.silent.items():
        tests.append(world(about, series) | {"promql_expr_test": [firing(name, case.at, None)]})
    check(tests, only(name, tmp_path / "rules.yml"), tmp_path)


def only(name: str, file: Path) -> Path:
    """Write the rule of one alert, as it is in the rules file: no rule reads another's result."""
    groups = yaml.safe_load(RULES.read_text(encoding="utf-8"))["groups"]
    chosen = [(each, rule) for each in groups for rule in each["rules"] if rule.get("alert") == name]
    [(group, rule)] = chosen
    document = {"groups": [group | {"rules": [rule]}]}
    file.write_text(yaml.safe_dump(document, width=1000), encoding="utf-8")
    return file


@needs_promtool
def test_active_alerts_are_listed_with_value_and_age(tmp_path: Path):
    """The dashboard's two queries have the same labels, so Grafana merges them into one row an alert."""
    [panel] = [panel for panel in ROW.panels if panel.title == "Active alerts"]
    value, age = (query.text for query in panel.queries)
    labels = 'alertname="BatchStuck",alertstate="firing",batch_id="b",severity="warning"'

    def row(query: str, number: float) -> dict[str, Any]:
        sample = {"labels": "{" + labels + "}", "value": number}
        return {"expr": query, "eval_time": "30m", "exp_samples": [sample]}

    # Idle since the start, and beyond 15 minutes from 15:15 on.
    rows = [row(value, 30 * 60), row(age, 30 * 60 - (15 * 60 + 15))]
    check([world("stuck", CASES["BatchStuck"].fires) | {"promql_expr_test": rows}], RULES, tmp_path)


def check(tests: list[dict[str, Any]], rules_file: Path, folder: Path) -> None:
    file = folder / "tests.yml"
    document = {"rule_files": [str(rules_file)], "evaluation_interval": "15s", "tests": tests}
    file.write_text(yaml.safe_dump(document, width=1000), encoding="utf-8")
    ran = subprocess.run(
        ["promtool", "test", "rules", str(file)], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
