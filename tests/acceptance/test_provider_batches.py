"""`scoreline batch run --batch-api`: from a folder to scorecards, the answers by provider batches."""

import json
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scoreline.provider_sim.simulator import Simulator
from tests.acceptance.batch_commands import Folder
from tests.extras import require
from tests.provider import provider
from tests.waiting import until

require("anthropic")
pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

RUN = ("batch", "run", "--workers", "1", "--json", "--dataset", "cases.jsonl", "--evaluator", "exact")
CLAUDE = ("--target", "anthropic/claude-sonnet-4-5")
KEY = "sk-ant-a-key-that-must-not-leak"


@pytest.fixture
async def sim() -> AsyncIterator[Simulator]:
    async with provider(mode="echo", batch_seconds=1_000) as lent:
        yield lent


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str, sim: Simulator) -> Folder:
    made = Folder(tmp_path, redis_url, postgres_url)
    made.environ |= {"ANTHROPIC_BASE_URL": sim.base_url, "ANTHROPIC_API_KEY": KEY}
    made.cases(30)
    return made


async def test_a_batch_is_answered_by_provider_batches(folder: Folder, sim: Simulator) -> None:
    """One provider batch, no single call, half the price, and every case passes."""
    async with folder.started(*RUN, *CLAUDE, "--batch-api") as run:
        await until(lambda: sim.stats.batches_created, 90)
        status = await folder.run("batch", "status", folder.batch_id())
        assert "Provider batch" in status.stdout + status.stderr
        sim.finish_batches()
        ran = await run.end()
    assert ran.code == 0, ran.stderr
    summary = json.loads(ran.stdout.splitlines()[-1])
    assert (summary["completed"], summary["passed"], summary["retried"]) == (30, 30, 0)
    assert summary["cost_usd"] > 0
    assert (sim.stats.batches_created, sim.stats.batch_requests) == (1, 30)
    assert sim.stats.of("/v1/messages", 200) == 0
    assert "30 answers by provider batches, at half the price" in ran.stderr
    assert KEY not in ran.stdout + ran.stderr


async def test_a_run_that_is_killed_is_resumed_without_a_second_submission(
    folder: Folder, sim: Simulator
) -> None:
    """What was submitted is found in the ledger, and collected."""
    async with folder.started(*RUN, *CLAUDE, "--batch-api", "--batch-fallback", "sync") as run:
        await until(lambda: folder.ask("SELECT FROM provider_batches WHERE state = 'submitted'"), 90)
        run.process.kill()
    sim.finish_batches()
    ran = await folder.run("batch", "resume", folder.batch_id(), "--workers", "1", "--json", "--batch-api")
    assert ran.code == 0, ran.stderr
    assert "30 evaluations go to provider batches." in ran.stderr
    assert json.loads(ran.stdout.splitlines()[-1])["passed"] == 30
    assert sim.stats.batches_created == 1


async def test_what_is_left_of_a_run_is_moved_to_provider_batches(folder: Folder, sim: Simulator) -> None:
    """No request is sent twice, and the log has every step."""
    folder.cases(200)
    async with folder.started(*RUN, *CLAUDE, "--rpm-limit", "600") as run:
        await until(lambda: sim.stats.of("/v1/messages", 200) >= 10, 90)
        run.process.send_signal(signal.SIGINT)
        await run.end()
    asked = sim.stats.of("/v1/messages", 200)
    sim.change(batch_seconds=0)
    batch_id = folder.batch_id()
    ran = await folder.run("batch", "resume", batch_id, "--workers", "1", "--json", "--batch-api")
    assert ran.code == 0, ran.stderr
    summary = json.loads(ran.stdout.splitlines()[-1])
    assert (summary["completed"], summary["passed"]) == (200, 200)
    assert sim.stats.of("/v1/messages", 200) + sim.stats.batch_requests == 200
    assert sim.stats.batch_requests >= 200 - asked - 16
    many = sim.stats.batch_requests
    assert f"{many} evaluations go to provider batches ({many} withdrawn from executors)" in ran.stderr
    verified = await folder.run("replay", "--batch", batch_id, "--verify")
    assert verified.code == 0, verified.stdout + verified.stderr
    document = "event::jsonb #>> '{data,error,kind}' = 'moved' OR event::jsonb #>> '{data,reason}' = 'lost'"
    assert folder.ask(f"SELECT count(DISTINCT evaluation_id) FROM events WHERE {document}") == [(many,)]
    [(moved,)] = folder.ask("SELECT evaluation_id FROM evaluations WHERE attempt > 2 LIMIT 1")
    story = (await folder.run("replay", moved, "--json")).stdout
    # The embedded Redis may have stopped in between: what it had received is lost then, not moved.
    assert '"moved"' in story or '"lost"' in story


async def test_what_can_not_be_asked_in_batches_is_refused(folder: Folder) -> None:
    """With a sentence, before anything is accepted."""
    ran = await folder.run(*RUN, "--target", "openai/gpt-5", "--batch-api")
    assert ran.code == 1
    assert "openai/gpt-5 takes no batches" in " ".join(ran.stderr.split())
    rows = [{"input": number, "expected": number, "serial": True} for number in ("1", "2")]
    folder.write("cases.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    ran = await folder.run(*RUN, *CLAUDE, "--batch-api")
    assert ran.code == 1
    assert "wait for each other" in " ".join(ran.stderr.split())
    assert folder.ask("SELECT FROM batches") == []


async def test_a_missing_key_is_reported_and_not_waited_for(folder: Folder) -> None:
    """The batch is paused with the reason, and goes on with `batch resume`."""
    folder.environ["ANTHROPIC_API_KEY"] = ""
    ran = await folder.run(*RUN, *CLAUDE, "--batch-api", "--no-preflight")
    assert ran.code == 4, ran.stderr
    assert "ANTHROPIC_API_KEY is not set" in " ".join(ran.stderr.split())
