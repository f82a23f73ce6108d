"""Producers without our library: plain XADDs against a real storage worker, read by the commands."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from eventlog import payloads as p
from eventlog.codec import encode, fields_of
from eventlog.keys import DEFAULT_SHARDS, events_key, shard_of, wake_key
from tests.builders import BATCH, event, history
from tests.integration.worker import Site, scoreline, site, worker_process
from tests.waiting import until

LIFE = "queued provisioning running responded scored completed"


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    async with site(redis_url, postgres_url) as made:
        yield made


async def command(here: Site, *arguments: str) -> tuple[int, str]:
    """Run a command against the site's servers; returns its exit code and output."""
    urls = {"EVAL_REDIS_URL": here.redis_url, "EVAL_POSTGRES_URL": here.postgres_url}
    ran = await asyncio.to_thread(scoreline, *arguments, **urls)
    assert "Traceback" not in ran.stderr, ran.stderr
    return ran.returncode, ran.stdout + ran.stderr


async def test_extreme_time_is_quarantined_and_the_batch_stays_readable(here: Site, tmp_path: Path) -> None:
    """Two events at the ends of the calendar stop two evaluations; the third is shown by every command."""
    times = {"early": "0001-01-01T00:00:00+01:00", "late": "9999-12-31T23:59:59-05:00"}
    async with worker_process(here):
        for key, at in times.items():
            await here.add_plainly(history("queued provisioning", evaluation_id=key))
            good: dict[str, Any] = json.loads(encode(event("running", evaluation_id=key, sequence=2)))
            fields = {"attempt": 1, "sequence": 2, "type": "running"}
            await here.add_fields(key, fields | {"event": json.dumps(good | {"occurred_at": at})})
        await here.add_plainly(history(LIFE, evaluation_id="ordinary"))

        async def settled() -> bool:
            kept = [await here.reasons(key) for key in times]
            return kept == [["invalid"]] * 2 and await here.state("ordinary") == "completed"

        await until(settled)
    for arguments in (
        ["batch", "status", BATCH],
        ["batch", "export", BATCH, "-o", str(tmp_path / "out.jsonl")],
        ["replay", "--batch", BATCH, "--verify"],
        *(["replay", key] for key in (*times, "ordinary")),
    ):
        code, output = await command(here, *arguments)
        assert code == 0, (arguments, output)
    _, output = await command(here, "quarantine", "list", "--reason", "invalid")
    assert "early" in output
    assert "late" in output
    assert '"evaluation_id":"ordinary"' in (tmp_path / "out.jsonl").read_text()


async def test_scores_and_cost_that_completed_does_not_repeat_are_in_scorecard_and_export(
    here: Site, tmp_path: Path
) -> None:
    """Status, export and replay give one figure, and the tables equal the log."""
    answered = p.Responded(output="4", usage=p.TokenUsage(input_tokens=7), cost_usd=0.25, latency_ms=12.5)
    judged = p.Scored(evaluator="judge", score=0.5, passed=True, cost_usd=0.5)
    async with worker_process(here):
        *before, end = history(LIFE, evaluation_id="foreign", responded=answered, scored=judged)
        await here.add_plainly(before)

        async def answered_row() -> bool:
            return await here.state("foreign") == "responded"

        await until(answered_row)  # so that what is left out has to be read back
        bare = json.loads(encode(end)) | {"data": {"verdict": "passed"}}
        fields = {"attempt": 1, "sequence": 5, "type": "completed", "event": json.dumps(bare)}
        await here.add_fields("foreign", fields)

        async def completed() -> bool:
            return await here.state("foreign") == "completed"

        await until(completed)
    code, output = await command(here, "batch", "export", BATCH, "-o", str(tmp_path / "out.jsonl"))
    assert code == 0, output
    row = json.loads((tmp_path / "out.jsonl").read_text())
    assert (row["tokens"], row["cost_usd"], row["latency_ms"], row["score"]) == (7, 0.75, 12.5, 0.5)
    assert [one["evaluator"] for one in row["scores"]] == ["judge"]
    code, output = await command(here, "batch", "status", BATCH, "--json")
    assert (code, json.loads(output)["cost_usd"]) == (0, 0.75)
    for mode in ("--verify", "--rebuild", "--verify"):
        code, output = await command(here, "replay", "--batch", BATCH, mode)
        assert code == 0, output
    code, output = await command(here, "replay", "foreign", "--json")
    assert json.loads(output)["scorecard"]["cost_usd"] in {0.75, "0.75"}


async def test_streams_that_no_wake_up_leads_to_are_found(here: Site) -> None:
    """One without a row or wake-up is stored; those in the wrong shard are quarantined with both keys."""
    await here.add_plainly(history(LIFE, evaluation_id="unnoticed"), wake=False)
    right = {key: shard_of(key, DEFAULT_SHARDS) for key in ("woken-beside", "woken-right", "unwoken")}
    wrong = {key: 7 if key == "unwoken" else (shard + 1) % DEFAULT_SHARDS for key, shard in right.items()}
    for key, shard in wrong.items():
        for each in history(LIFE, evaluation_id=key):
            fields: Any = fields_of(each, encode(each))
            await here.redis.xadd(events_key(shard, key), fields)
    await here.redis.xadd(wake_key(wrong["woken-beside"]), {"id": "woken-beside"})
    await here.redis.xadd(wake_key(right["woken-right"]), {"id": "woken-right"})
    async with worker_process(here, "--gap-timeout", "0.2"):

        async def found() -> bool:
            kept = [await here.reasons(key) for key in right]
            return kept == [["mismatch"] * 6] * 3 and await here.state("unnoticed") == "completed"

        await until(found, 60)
    for key, shard in right.items():
        code, output = await command(here, "quarantine", "list", "--evaluation", key, "--json")
        assert code == 0
        assert events_key(wrong[key], key) in output
        assert events_key(shard, key) in output
        assert await here.state(key) is None
    code, output = await command(here, "replay", "--batch", BATCH, "--verify")
    assert code == 0, output
