"""`scoreline observe`: after one real run, the queries of every panel of every dashboard are run."""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from grafana.catalogue import DASHBOARDS
from scoreline.command_error import CommandError
from scoreline.local.observe.run import run_observe
from tests.acceptance.batch_commands import gone
from tests.integration.worker import SCORELINE, environment, scoreline
from tests.waiting import until

TIMEOUT = 240

needs_prometheus = pytest.mark.skipif(shutil.which("prometheus") is None, reason="needs prometheus")


@needs_prometheus
@pytest.mark.timeout(TIMEOUT + 60)
def test_every_panel_shows_something_after_a_real_run(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Prometheus or Postgres accepts each query, and it returns rows unless the panel may be empty."""
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
        timeout=TIMEOUT,
        check=False,
    )
    document = json.loads(ran.stdout or "{}")
    assert (document.get("problems"), ran.returncode) == ([], 0), ran.stderr
    for page in DASHBOARDS:
        panels = document["dashboards"][page.title]
        assert [each["panel"] for each in panels] == [panel.title for panel in page.panels]
        assert [each["error"] for each in panels] == [""] * len(panels)


def test_without_prometheus_the_error_names_the_remedy(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The error comes before anything is started."""
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CommandError, match="apt install prometheus"):
        run_observe(as_json=False, keep=False)
    assert list(tmp_path.iterdir()) == []


async def test_a_guarded_program_ends_with_its_manager():
    """Its end of the pipe is closed, however the manager ends."""
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
