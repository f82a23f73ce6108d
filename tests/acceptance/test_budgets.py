"""Budgets as people meet them: 64 slots, judges, refusals and a kill, and one figure on every screen."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from scoreline.provider_sim.simulator import Simulator
from tests.acceptance.batch_commands import TIMEOUT, Folder
from tests.extras import require
from tests.provider import provider
from tests.waiting import until

require("anthropic")
pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

INPUT, OUTPUT = 1.0, 5.0
"""Dollars for a million tokens."""
PAID = """
dataset: cases.jsonl
target: {type: anthropic, model: claude-haiku-4-5, prices: {input: 1, output: 5}}
evaluator: {type: llm_judge, model: anthropic/claude-haiku-4-5, rubric: "Is {output} polite?",
            prices: {input: 1, output: 5}}
max_cost: 0.02
"""


@pytest.fixture
async def sim() -> AsyncIterator[Simulator]:
    """A provider whose answers differ in length and time, and that is overloaded now and then."""
    async with provider(latency=0.2, latency_p95=0.6, output_tokens=60, overloaded=0.05) as lent:
        yield lent


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str, sim: Simulator) -> Folder:
    made = Folder(tmp_path, redis_url, postgres_url)
    made.environ |= {"ANTHROPIC_BASE_URL": sim.base_url, "ANTHROPIC_API_KEY": "sk-sim"}
    return made


def billed(sim: Simulator) -> float:
    """What the provider charges: every answer it gave, whether or not it was received."""
    return (sim.stats.input_tokens * INPUT + sim.stats.output_tokens * OUTPUT) / 1e6


async def test_a_budget_holds_with_64_slots_judges_retries_and_a_kill(
    folder: Folder, sim: Simulator
) -> None:
    """The provider bills at most 5 % more; every screen has one figure; a larger budget lets it go on."""
    folder.cases(600)
    folder.write("paid.yaml", PAID)
    run = ("batch", "run", "-c", "paid.yaml", "--workers", "2", "--concurrency", "32", "--json")
    async with folder.started(*run) as running:
        await until(lambda: folder.ended() >= 10, TIMEOUT)
        running.kill_child("worker", "start")
        ran = await running.end()
    document = ran.document
    assert (ran.code, document["status"]) == (4, "paused"), ran.stderr
    assert 0.02 * 0.6 <= billed(sim) <= 0.02 * 1.05
    assert document["spent_usd"] <= 0.02 * 1.05
    assert document["over_budget"] == (document["spent_usd"] > 0.02)
    assert document["retried"] > 0
    batch_id = document["batch_id"]
    status = await folder.run("batch", "status", batch_id)
    refused = await folder.run("batch", "resume", batch_id)
    sentence = document["reason"]
    assert sentence.startswith("budget $0.02: $0.0"), sentence
    assert ", the next call may cost up to $0.0" in sentence
    suggestion = f"To continue: scoreline batch resume {batch_id} --max-cost 0.04"
    for screen in (ran.stderr, status.stdout + status.stderr, refused.stderr, "\n".join(document["why"])):
        assert f"{sentence}. {suggestion}" in " ".join(screen.split()), screen
    assert (status.code, refused.code) == (4, 1)
    raised = await folder.run("batch", "resume", batch_id, "--max-cost", "0.03", "--json")
    assert (raised.code, raised.document["max_cost_usd"]) == (4, 0.03), raised.stderr
    assert raised.document["spent_usd"] > document["spent_usd"]
    assert (
        raised.document["unrecorded_usd"] == document["unrecorded_usd"]
    )  # no call was lost, none counts twice
    assert billed(sim) <= 0.03 * 1.05
    [event] = folder.ask("SELECT by_whom FROM batch_events WHERE type = 'paused' LIMIT 1")
    assert event == ("coordinator",)


async def test_calls_that_an_interrupt_breaks_off_are_spend_at_the_pause(folder: Folder) -> None:
    """They may be billed: the pause counts them, and names them as an estimate."""
    async with provider(latency=60) as slow:
        folder.environ |= {"ANTHROPIC_BASE_URL": slow.base_url, "EVAL_WORKER_DRAIN": "0.5"}
        folder.cases(8)
        folder.write("paid.yaml", PAID.replace("0.02", "0.05"))
        run = ("batch", "run", "-c", "paid.yaml", "--workers", "1", "--concurrency", "8", "--json")
        async with folder.started(*run) as running:
            await until(lambda: slow.stats.in_flight > 0, TIMEOUT)
            running.interrupt()
            ran = await running.end()
    assert ran.code == 130, ran.stderr
    status = await folder.run("batch", "status", ran.document["batch_id"])
    assert "for calls whose cost is unknown" in status.stdout + status.stderr
    document = (await folder.run("batch", "status", ran.document["batch_id"], "--json")).document
    assert 0 < document["spent_usd"] == document["unrecorded_usd"]


REPORTS = """
def paid(prompt):
    return {"output": prompt, "cost_usd": 0.30}
"""


async def test_a_cost_known_only_afterwards_overdraws_by_one_call_and_is_reported(folder: Folder) -> None:
    """A function that reports its cost is probed by one call; what exceeds the budget ends with 5."""
    folder.write("reports.py", REPORTS)
    folder.cases(1)
    asked = ("batch", "run", "--dataset", "cases.jsonl", "--target", "python:reports:paid", "--json")
    rest = ("--evaluator", "exact", "--workers", "2", "--max-cost")
    over = await folder.run(*asked, *rest, "0.25")
    assert (over.code, over.document["status"], over.document["over_budget"]) == (5, "completed", True), (
        over.stderr
    )
    assert over.document["over_budget_usd"] == pytest.approx(0.05)
    assert "over budget by $0.05" in over.stderr
    exact = await folder.run(*asked, *rest, "0.30")
    assert (exact.code, exact.document["over_budget"]) == (0, False), exact.stderr
    folder.cases(40)
    probed = await folder.run(*asked, *rest, "1.00")
    assert (probed.code, probed.document["completed"]) == (4, 3), json.dumps(probed.document)
