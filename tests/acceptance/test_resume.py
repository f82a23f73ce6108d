"""`scoreline batch resume` after Ctrl-C: it starts at once, and reports no retry that never happened."""

import json
from datetime import UTC, datetime
from pathlib import Path

from tests.acceptance.batch_commands import Folder
from tests.waiting import until

TOTAL = 60
AT_ONCE = 8.0
"""Seconds: less than the ten for which a coordinator waits for owners after Redis has lost data."""


def ready_since(folder: Folder, moment: datetime) -> datetime:
    """Return when the last process of the run that was started after a moment became ready."""
    [log] = (folder.data / "logs").glob("*.log")
    lines = log.read_text().splitlines()
    document = [json.loads(line) for line in lines if line.startswith("{")]
    ready = [one["time"] for one in document if one["message"] in {"ready", "elected leader"}]
    return max(found for found in map(datetime.fromisoformat, ready) if found > moment)


def claims_since(folder: Folder, moment: datetime) -> list[datetime]:
    """Return when attempts were claimed after a moment."""
    rows = folder.ask("SELECT occurred_at FROM events WHERE type = 'provisioning' ORDER BY 1")
    return [found for (found,) in rows if found > moment]


async def test_a_resumed_batch_starts_at_once_and_counts_no_retry(tmp_path: Path) -> None:
    """What was handed back or never started is no retry, and waits for no grace period."""
    folder = Folder(tmp_path)
    folder.environ["EVAL_WORKER_DRAIN"] = "0.2"
    folder.cases(TOTAL)
    argv = ("--workers", "1", "--concurrency", "8", "--json")
    asked = ("--dataset", "cases.jsonl", "--target", "python:app:gated", "--evaluator", "exact")
    async with folder.started("batch", "run", *asked, *argv) as run:
        await until(lambda: len(folder.calls) >= 8, 60)
        run.interrupt()
        ran = await run.end()
    assert ran.code == 130, ran.stderr
    await folder.at_rest()
    (folder.root / "open").touch()
    interrupted_at = datetime.now(UTC)  # noqa: TID251 - the processes under test are on this clock
    async with folder.started("batch", "resume", ran.document["batch_id"], *argv) as run:
        await until(lambda: bool(claims_since(folder, interrupted_at)), 60)
        waited = claims_since(folder, interrupted_at)[0] - ready_since(folder, interrupted_at)
        resumed = await run.end()
    document = resumed.document
    assert (resumed.code, document["completed"], document["retried"]) == (0, TOTAL, 0), resumed.stderr
    assert "retr" not in resumed.stderr
    assert waited.total_seconds() < AT_ONCE
    summary = await folder.run("replay", "--batch", document["batch_id"], "--summary")
    assert "lost" not in summary.stdout, summary.stdout
    assert len(folder.calls) <= TOTAL + 8, "only active tasks are called again"
