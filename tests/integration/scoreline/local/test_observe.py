"""`scoreline observe`: one real run, after which every panel of every dashboard has been asked for."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grafana.catalogue import DASHBOARDS
from scoreline.local.observe.run import run_observe
from scoreline.problem import Problem
from tests.acceptance.batch_commands import gone
from tests.integration.worker import SCORELINE, environment, scoreline
from tests.waiting import until

PATIENCE = 240

needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")


@needs_prometheus
@pytest.mark.timeout(PATIENCE + 60)
def test_every_panel_shows_something_after_a_real_run(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Each query is taken by a real Prometheus or Postgres, and brings rows unless calm is told by none."""
    pytest.importorskip("opentelemetry.sdk")
    pytest.importorskip("anthropic")
    environ = {
        "EVAL_DATA_DIR": str(tmp_path),
        "EVAL_REDIS_URL": redis_url,
        "EVAL_POSTGRES_URL": postgres_url,
    }
    migrated = scoreline("db", "migrate", **environ)
    assert migrated.returncode == 0, migrated.stderr
    ran = subprocess.run(
        [SCORELINE, "observe", "--json"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(**environ),
        timeout=PATIENCE,
        check=False,
    )
    told = json.loads(ran.stdout or "{}")
    assert (told.get("problems"), ran.returncode) == ([], 0), ran.stderr
    for page in DASHBOARDS:
        shown = told["dashboards"][page.title]
        assert [each["panel"] for each in shown] == [panel.title for panel in page.panels]
        assert [each["error"] for each in shown] == [""] * len(shown)


def test_without_prometheus_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Before anything is started."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Problem, match="apt install prometheus"):
        run_observe(as_json=False, keep=False)
    assert list(tmp_path.iterdir()) == []


async def test_a_guarded_program_ends_with_its_manager():
    """However that went: its end of the pipe is closed."""
    guard = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "scoreline.local.observe.guarded", "sleep", "600"),
        stdin=asyncio.subprocess.PIPE,
    )
    children = Path(f"/proc/{guard.pid}/task/{guard.pid}/children")
    [pid] = await until(lambda: children.read_text().split())
    assert guard.stdin
    guard.stdin.close()
    assert await asyncio.wait_for(guard.wait(), 20) == -signal.SIGTERM % 256
    assert gone([int(pid)])
