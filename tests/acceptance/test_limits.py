"""Limits as people give them: those of one batch bind another on the same lane, and status names whose."""

import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from domain.batch_spec import Limits
from scoreline.provider_sim.simulator import Simulator
from tests.acceptance.batch_commands import TIMEOUT, Folder
from tests.extras import require
from tests.limits.commands import RecordingStats
from tests.limits.measure import InForce, most_in_flight, violations
from tests.provider import provider
from tests.waiting import until

require("anthropic")
pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

MODEL = "anthropic/claude-haiku-4-5"
RUN = ("batch", "run", "--workers", "1", "--json", "--target", MODEL, "--evaluator", "contains:batch")
LAG = 0.5
"""Seconds that a call may arrive after its permit was granted, on a machine with both cores busy."""


@pytest.fixture
async def sim() -> AsyncIterator[Simulator]:
    async with provider(mode="echo", latency=0.2, limit_headers=False) as lent:
        lent._calls.stats = RecordingStats()
        yield lent


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str, sim: Simulator) -> Folder:
    made = Folder(tmp_path, redis_url, postgres_url)
    made.environ |= {"ANTHROPIC_BASE_URL": sim.base_url, "ANTHROPIC_API_KEY": "key-0123456789"}
    for name in "ab":
        rows = (json.dumps({"input": f"batch {name} number {n}"}) for n in range(2_000))
        made.write(f"{name}.jsonl", "\n".join(rows) + "\n")
    return made


async def test_the_strictest_limit_binds_both_batches_and_status_names_its_origin(
    folder: Folder, sim: Simulator
) -> None:
    """300 requests a minute and two calls in flight beside no limit at all: the provider sees no more."""
    stats = sim.stats
    assert isinstance(stats, RecordingStats)
    limits = ("--rpm-limit", "300", "--max-concurrency", f"{MODEL}=2")
    async with folder.started(*RUN, "--name", "strict", "--dataset", "a.jsonl", *limits) as strict:
        await until(lambda: any(call.batch_id == "a" for call in stats.recorded), TIMEOUT)
        begun = stats.recorded[0].started
        async with folder.started(*RUN, "--name", "free", "--dataset", "b.jsonl") as free:
            await until(lambda: sum(call.batch_id == "b" for call in stats.recorded) >= 30, TIMEOUT)
            status = await folder.run("batch", "status", _id_of(folder, "free"))
            document = await folder.run("batch", "status", _id_of(folder, "free"), "--json")
            over = stats.recorded[-1].started
            free.interrupt()
            await free.end()
        strict.interrupt()
        await strict.end()
    calls = [call for call in stats.recorded if call.started <= over]
    strictest = InForce("a", Limits(rpm=300, max_concurrency=2), begun, over)
    assert violations(calls, [strictest], lag=LAG) == []
    assert most_in_flight(calls) == 2
    batch_id = _id_of(folder, "strict")
    assert re.search(
        rf"Limits in force on anthropic:\S+: 300 requests a minute \(batch {batch_id}, limits\); "
        rf"2 calls in flight \(batch {batch_id}, targets\.{MODEL}\)\.",
        status.stdout + status.stderr,
    ), status.stderr
    [lane] = document.document["lanes"]
    assert [(each["batch_id"], each["rpm"], each["max_concurrency"]) for each in lane["limits"]] == [
        (batch_id, 300, None),
        (batch_id, None, 2),
    ]


def _id_of(folder: Folder, name: str) -> str:
    [(batch_id,)] = folder.ask(f"SELECT batch_id FROM batches WHERE name = '{name}'")
    return str(batch_id)


OVERALL = f"""
dataset: a.jsonl
targets:
  - {MODEL}
  - {{type: anthropic, model: claude-haiku-4-5, label: again, account: other}}
evaluators:
  - contains:batch
  - {{type: llm_judge, model: anthropic/claude-haiku-4-5, rubric: "Is {{output}} right?", scale: [1, 5],
     threshold: 3, name: judge, rate_limits: {{rpm: 6000}}}}
limit: 15
max_concurrency: 3
accounts: {{"anthropic:other": {{rpm: 3000}}}}
"""


async def test_max_concurrency_holds_for_all_targets_and_judges_together(
    folder: Folder, sim: Simulator
) -> None:
    """Two accounts and a judge, each with a lane of its own: three calls at a time, and all complete."""
    folder.write("overall.yaml", OVERALL)
    sim.change(pass_rate=1.0)
    ran = await folder.run("batch", "run", "--workers", "2", "--json", "-c", "overall.yaml")
    assert (ran.code, ran.document["completed"]) == (0, 30), ran.stderr
    assert sim.stats.max_in_flight == 3
