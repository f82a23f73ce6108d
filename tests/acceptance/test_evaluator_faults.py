"""Evaluators that time out or fail, through the command line: scores on record stay, only the rest runs."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.batch_commands import Folder

CASES = 4
JUDGES = """
import pathlib, time

HERE = pathlib.Path(__file__).parent

def answer(prompt):
    with open(HERE / "asked", "a") as asked:
        asked.write(prompt + "\\n")
    return prompt

def counts(output):
    with open(HERE / "counted", "a") as counted:
        counted.write(output + "\\n")
    return {"score": 0.75, "reason": "counted"}

def hangs_once(output):
    seen = HERE / f"seen-{output}"
    if not seen.exists():
        seen.write_text("")
        time.sleep(600)
    return True

def strict(output):
    if not (HERE / "mended").exists():
        raise ValueError("no verdict")
    return True
"""
SPEC = """
name: judged
dataset: cases.jsonl
target: python:judges:answer
evaluators:
  - exact
  - {{type: python, name: counts, function: "judges:counts"}}
  - {{type: python, name: last, function: "judges:{last}", timeout: 5}}
retries: 2
"""
RUN = ("batch", "run", "--workers", "1", "--json")

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.write("judges.py", JUDGES)
    folder.cases(CASES)
    return folder


def lines(folder: Folder, name: str) -> list[str]:
    """What a function was called with."""
    return sorted((folder.root / name).read_text().split())


async def records(folder: Folder, batch_id: str) -> list[dict[str, Any]]:
    """All evaluations as exported."""
    exported = await folder.run("batch", "export", batch_id, "-o", "out.jsonl", "--force")
    assert exported.code == 0, exported.stderr
    return [json.loads(line) for line in (folder.root / "out.jsonl").read_text().splitlines()]


async def verified(folder: Folder, batch_id: str) -> None:
    """The tables equal the log."""
    ran = await folder.run("replay", "--batch", batch_id, "--verify")
    assert ran.code == 0, ran.stdout + ran.stderr


async def test_a_time_out_of_an_evaluator_is_retried_and_nothing_else_is(folder: Folder) -> None:
    """The evaluator that hung runs again; the target and the other evaluators have run once."""
    folder.write("scoreline.yaml", SPEC.format(last="hangs_once"))
    ran = await folder.run(*RUN, "-c", "scoreline.yaml")
    assert (ran.code, ran.told["passed"], ran.told["dead_letters"]) == (0, CASES, 0), ran.stderr
    once = [str(number) for number in range(CASES)]
    assert lines(folder, "asked") == once
    assert lines(folder, "counted") == once
    await verified(folder, ran.told["batch_id"])


async def test_scores_survive_an_evaluator_that_fails_for_good(folder: Folder) -> None:
    """Export, dlq and replay show them and name the missing one; `batch retry` runs that one alone."""
    folder.write("scoreline.yaml", SPEC.format(last="strict"))
    ran = await folder.run(*RUN, "-c", "scoreline.yaml")
    batch_id = ran.told["batch_id"]
    assert (ran.code, ran.told["passed"], ran.told["dead_letters"]) == (3, 0, CASES), ran.stderr
    for record in await records(folder, batch_id):
        assert {score["evaluator"]: score["score"] for score in record["scores"]} == {
            "exact": 1.0,
            "counts": 0.75,
        }
        assert (record["status"], record["verdict"], record["output"]) == (
            "failed",
            None,
            record["input"],
        )
        assert "evaluator last" in str(record["error"])
    letters = await folder.run("batch", "dlq", batch_id)
    assert "scores kept: exact 1" in " ".join(letters.stdout.split()), letters.stdout
    told = await folder.run("batch", "dlq", batch_id, "--json")
    letter = json.loads(told.stdout.splitlines()[0])
    assert letter["scores"] == {"exact": 1.0, "counts": 0.75}
    replayed = await folder.run("replay", letter["evaluation_id"])
    assert "counts: 0.75" in replayed.stdout
    await verified(folder, batch_id)

    folder.write("mended", "")
    again = await folder.run("batch", "retry", batch_id, "--workers", "1", "--json")
    assert (again.code, again.told["passed"], again.told["dead_letters"]) == (0, CASES, 0), again.stderr
    once = [str(number) for number in range(CASES)]
    assert (lines(folder, "asked"), lines(folder, "counted")) == (once, once)
    assert [len(record["scores"]) for record in await records(folder, batch_id)] == [3] * CASES
    await verified(folder, batch_id)
