"""Redis killed and started again with its append-only file, under a running batch."""

import os
import signal
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import HEAVY, Folder
from tests.waiting import until

TOTAL = 40


@HEAVY
@pytest.mark.timeout(300)
async def test_nothing_is_reopened_as_lost_after_a_restart_of_redis(tmp_path: Path) -> None:
    """Active tasks go on, waiting ones are published again, and no target is called twice."""
    folder = Folder(tmp_path)
    folder.cases(TOTAL)
    asked = ("--dataset", "cases.jsonl", "--target", "python:app:gated", "--evaluator", "exact")
    argv = ("--workers", "1", "--concurrency", "8", "--json")
    async with folder.started("batch", "run", *asked, *argv) as run:
        await until(lambda: len(folder.calls) >= 8, 90)
        pid_file = folder.data / "servers" / "valkey.pid"
        killed = pid_file.read_text()
        os.kill(int(killed), signal.SIGKILL)
        await until(lambda: pid_file.exists() and pid_file.read_text() not in {"", killed}, 60)
        (folder.root / "open").touch()
        ran = await run.end()
        document = ran.document
    assert (ran.code, document["passed"], document["retried"]) == (0, TOTAL, 0), ran.stderr
    assert len(folder.calls) == TOTAL, "an answer on its way is not asked for again"
    summary = await folder.run("replay", "--batch", document["batch_id"], "--summary")
    assert "lost" not in summary.stdout, summary.stdout
