"""Routes and inhibitions of Alertmanager: the receiver of an alert, and the alerts it inhibits."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from scoreline.local.alert_rules import RULES
from scoreline.observability.alerts.definition import Severity
from scoreline.observability.alerts.table import ALERTS
from scoreline.observability.thresholds import Thresholds

CONFIG = RULES.with_name("alertmanager.yml")
PLAN: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
RECEIVERS = {Severity.CRITICAL: "pager,chat", Severity.WARNING: "chat", Severity.INFO: "none"}
needs_amtool = pytest.mark.skipif(not shutil.which("amtool"), reason="amtool is not installed")
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")


def amtool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["amtool", *words], check=False, capture_output=True, text=True)


@needs_amtool
def test_alertmanager_accepts_its_configuration():
    """The templates too."""
    ran = amtool("check-config", str(CONFIG))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@needs_amtool
@pytest.mark.parametrize("alert", ALERTS.values(), ids=lambda alert: alert.name)
def test_an_alert_is_routed_by_its_severity(alert):
    """Critical to the pager and the chat, warning to the chat, info to no receiver."""
    labels = [f"alertname={alert.name}", f"severity={alert.severity}", "job=executor"]
    wanted = f"--verify.receivers={RECEIVERS[alert.severity]}"
    ran = amtool("config", "routes", "test", f"--config.file={CONFIG}", wanted, *labels)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def matched(matchers: list[str]) -> set[str]:
    """List the alerts that matchers select."""
    [(operator, value)] = [re.fullmatch(r'alertname(=~|!=|=)"(.+)"', each).groups() for each in matchers]  # type: ignore[union-attr]
    named = set(value.split("|"))
    assert named <= ALERTS.keys(), f"no alert is named {named - ALERTS.keys()}"
    return ALERTS.keys() - named if operator == "!=" else named


INHIBITED = [
    (next(iter(matched(rule["source_matchers"]))), matched(rule["target_matchers"]))
    for rule in PLAN["inhibit_rules"]
]


def test_no_alert_inhibits_itself_and_no_two_inhibit_each_other():
    """Of two such alerts neither would be delivered."""
    inhibited_by = dict(INHIBITED)
    assert len(inhibited_by) == len(INHIBITED)
    for source, targets in inhibited_by.items():
        assert source not in targets
        assert [each for each in targets if source in inhibited_by.get(each, ())] == []


def test_consequences_of_a_fault_are_inhibited():
    """Without executors no batch makes progress: one alert is delivered, not five."""
    inhibited_by = dict(INHIBITED)
    assert {"WorkerDown", "WorkerStalled", "BatchStuck", "QueueBacklog"} <= inhibited_by["AllWorkersDown"]
    assert {"AllWorkersDown", "WorkerStalled", "BatchStuck", "StorageLag"} <= inhibited_by["RedisDown"]
    assert {"BatchStuck", "StorageLag", "CoordinatorDown"} <= inhibited_by["PostgresDown"]


@needs_promtool
def test_prometheus_accepts_its_configuration(tmp_path: Path):
    """With the rules at the path that the container has."""
    text = RULES.with_name("prometheus.yml").read_text(encoding="utf-8")
    config = tmp_path / "prometheus.yml"
    config.write_text(text.replace("/etc/prometheus/rules.yml", str(RULES)), encoding="utf-8")
    ran = subprocess.run(
        ["promtool", "check", "config", str(config)], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def test_the_scrape_timeout_is_the_one_that_the_rules_use():
    """Whether an executor is frozen is decided by the duration of its scrape."""
    plan = yaml.safe_load(RULES.with_name("prometheus.yml").read_text(encoding="utf-8"))
    assert plan["global"]["scrape_timeout"] == f"{Thresholds().scrape_timeout.total_seconds():g}s"
