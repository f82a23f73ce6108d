"""Who is told of which alert, and which alert keeps others quiet."""

import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from grafana.alert import Severity
from grafana.alerts import RULES, alerts
from scoreline.observability.thresholds import Thresholds

CONFIG = RULES.with_name("alertmanager.yml")
PLAN: dict[str, Any] = yaml.safe_load(CONFIG.read_text(encoding="utf-8"))
NAMES = {alert.name for alert in alerts(Thresholds())}
TOLD = {Severity.CRITICAL: "pager,chat", Severity.WARNING: "chat", Severity.INFO: "nobody"}
needs_amtool = pytest.mark.skipif(not shutil.which("amtool"), reason="amtool is not installed")
needs_promtool = pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed")


def amtool(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["amtool", *words], check=False, capture_output=True, text=True)


@needs_amtool
def test_alertmanager_takes_its_file():
    """Also what the templates are made of."""
    ran = amtool("check-config", str(CONFIG))
    assert ran.returncode == 0, ran.stdout + ran.stderr


@needs_amtool
@pytest.mark.parametrize("alert", alerts(Thresholds()), ids=lambda alert: alert.name)
def test_an_alert_reaches_whom_its_severity_says(alert):
    """Critical the pager and the chat, warning the chat, info nobody."""
    labels = [f"alertname={alert.name}", f"severity={alert.severity}", "job=executor"]
    wanted = f"--verify.receivers={TOLD[alert.severity]}"
    ran = amtool("config", "routes", "test", f"--config.file={CONFIG}", wanted, *labels)
    assert ran.returncode == 0, ran.stdout + ran.stderr


def matched(matchers: list[str]) -> set[str]:
    """List the alerts that some matchers mean."""
    [(operator, value)] = [re.fullmatch(r'alertname(=~|!=|=)"(.+)"', each).groups() for each in matchers]  # type: ignore[union-attr]
    named = set(value.split("|"))
    assert named <= NAMES, f"no alert is called {named - NAMES}"
    return NAMES - named if operator == "!=" else named


INHIBITED = [
    (next(iter(matched(rule["source_matchers"]))), matched(rule["target_matchers"]))
    for rule in PLAN["inhibit_rules"]
]


def test_nothing_silences_itself_and_no_two_silence_each_other():
    """Or of two troubles neither would be told."""
    silences = dict(INHIBITED)
    assert len(silences) == len(INHIBITED)
    for source, targets in silences.items():
        assert source not in targets
        assert [each for each in targets if source in silences.get(each, ())] == []


def test_what_follows_from_something_is_kept_quiet():
    """Without executors nothing moves, and nobody needs to hear that besides."""
    silences = dict(INHIBITED)
    assert {"WorkerDown", "WorkerStalled", "BatchStuck", "QueueBacklog"} <= silences["AllWorkersDown"]
    assert {"AllWorkersDown", "WorkerStalled", "BatchStuck", "StorageLag"} <= silences["RedisDown"]
    assert {"BatchStuck", "StorageLag", "CoordinatorDown"} <= silences["PostgresDown"]


@needs_promtool
def test_prometheus_takes_its_file(tmp_path: Path):
    """With the rules where the container has them."""
    text = RULES.with_name("prometheus.yml").read_text(encoding="utf-8")
    config = tmp_path / "prometheus.yml"
    config.write_text(text.replace("/etc/prometheus/rules.yml", str(RULES)), encoding="utf-8")
    ran = subprocess.run(
        ["promtool", "check", "config", str(config)], check=False, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr


def test_prometheus_waits_as_long_as_the_rules_think():
    """Whether an executor is frozen is told by how long it was waited for."""
    plan = yaml.safe_load(RULES.with_name("prometheus.yml").read_text(encoding="utf-8"))
    assert plan["global"]["scrape_timeout"] == f"{Thresholds().scrape_timeout.total_seconds():g}s"
