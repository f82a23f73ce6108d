"""After one real run, the queries of every panel of every dashboard return something."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from grafana.catalogue import DASHBOARDS
from tests.integration.worker import SCORELINE, environment

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
