"""Alerts as an operator sees them: at the command line, and in the rules that `make alerts` writes."""

import asyncio
import json
from pathlib import Path

import pytest
import yaml

from scoreline.local.alert_rules import RULES
from scoreline.observability.alerts.rules import rules
from scoreline.settings import load_settings
from tests.acceptance.batch_commands import TIMEOUT, Folder
from tests.waiting import until

FLAKY = """
import app

def answer(prompt):
    return app.raises(prompt) if int(prompt) < 3 else app.gated(prompt)
"""
RUNBOOK = "https://git.example/docs/how-to/operations.md"

pytestmark = pytest.mark.timeout(300)


async def test_alerts_have_value_threshold_age_and_an_absolute_link(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """`batch status --alert` prints a table at thresholds of the environment; --json has the same."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.environ |= {"EVAL_ALERT_DEAD_LETTERS": "2", "EVAL_RUNBOOK_URL": RUNBOOK, "COLUMNS": "60"}
    folder.cases(8)
    folder.write("flaky.py", FLAKY)
    asked = ("--dataset", "cases.jsonl", "--target", "python:flaky:answer", "--evaluator", "exact")
    async with folder.started("batch", "run", *asked, "--workers", "1", "--retries", "0") as running:
        await until(lambda: folder.ended() == 3, TIMEOUT)
        status = ("batch", "status", folder.batch_id(), "--alert")
        shown, machine = await asyncio.gather(folder.run(*status), folder.run(*status, "--json"))
        folder.write("open", "")
        await running.end()
    header, row, action, *_ = shown.stdout.splitlines()
    assert header.split() == ["severity", "alert", "value", "threshold", "age"]
    assert row.split() == ["warning", "DLQGrowing", "3", "2", "-"]
    assert action.endswith(f"scoreline batch dlq {folder.batch_id()}  {RUNBOOK}#dlqgrowing"), shown.stdout
    alert = json.loads(machine.stdout.splitlines()[0])
    found = [alert[key] for key in ("alert", "severity", "value", "threshold", "unit", "runbook")]
    assert found == ["DLQGrowing", "warning", 3, 2, "count", f"{RUNBOOK}#dlqgrowing"]


def test_rules_are_rendered_with_the_thresholds_of_the_environment() -> None:
    """`make alerts` takes EVAL_ALERT_… and EVAL_RUNBOOK_URL; without them it changes nothing."""
    settings = load_settings({"EVAL_ALERT_NO_PROGRESS": "77", "EVAL_RUNBOOK_URL": RUNBOOK})
    written = rules(settings.thresholds, runbook=settings.runbook_url or "")
    firing, _ = yaml.safe_load(written)["groups"]
    stuck = next(rule for rule in firing["rules"] if rule["alert"] == "BatchStuck")
    assert "(eval_batch_idle_seconds) > 77)" in stuck["expr"]
    assert stuck["annotations"]["runbook_url"] == f"{RUNBOOK}#batchstuck"
    assert rules(load_settings({}).thresholds) == RULES.read_text(encoding="utf-8")
