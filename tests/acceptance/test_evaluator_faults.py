"""Evaluators that time out or fail, through the command line: scores on record stay, only the rest runs."""

import json
import re
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

def bad(output):
    raise ValueError("this judge is broken")

def wrong_on_last(prompt):
    return "wrong" if prompt == "2" else prompt

def approves(output):
    return {"score": 1.0, "passed": True, "reason": "approved"}

def strict(output):
    if not (HERE / "repaired").exists():
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
    assert (ran.code, ran.document["passed"], ran.document["dead_letters"]) == (0, CASES, 0), ran.stderr
    once = [str(number) for number in range(CASES)]
    assert lines(folder, "asked") == once
    assert lines(folder, "counted") == once
    await verified(folder, ran.document["batch_id"])


async def test_scores_survive_an_evaluator_that_fails_for_good(folder: Folder) -> None:
    """Export, dlq and replay show them and name the missing one; `batch retry` runs that one alone."""
    folder.write("scoreline.yaml", SPEC.format(last="strict"))
    ran = await folder.run(*RUN, "-c", "scoreline.yaml")
    batch_id = ran.document["batch_id"]
    assert (ran.code, ran.document["passed"], ran.document["dead_letters"]) == (3, 0, CASES), ran.stderr
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
    document = await folder.run("batch", "dlq", batch_id, "--json")
    letter = json.loads(document.stdout.splitlines()[0])
    assert letter["scores"] == {"exact": 1.0, "counts": 0.75}
    replayed = await folder.run("replay", letter["evaluation_id"])
    assert "counts: 0.75" in replayed.stdout
    await verified(folder, batch_id)

    folder.write("repaired", "")
    again = await folder.run("batch", "retry", batch_id, "--workers", "1", "--json")
    assert (again.code, again.document["passed"], again.document["dead_letters"]) == (0, CASES, 0), (
        again.stderr
    )
    once = [str(number) for number in range(CASES)]
    assert (lines(folder, "asked"), lines(folder, "counted")) == (once, once)
    assert [len(record["scores"]) for record in await records(folder, batch_id)] == [3] * CASES
    await verified(folder, batch_id)


async def test_results_have_a_row_for_each_evaluator_also_where_one_always_fails(folder: Folder) -> None:
    """Kept scores count for their evaluator; one without any verdict has a row; nothing passes overall."""
    folder.cases(3)
    spec = (
        "dataset: cases.jsonl\ntarget: python:judges:wrong_on_last\n"
        'evaluators: [exact, {type: python, function: "judges:bad", name: bad}]\n'
    )
    folder.write("raise.yaml", spec)
    ran = await folder.run(*RUN, "-c", "raise.yaml")
    assert ran.code == 3, ran.stderr
    status = await folder.run("batch", "status", ran.document["batch_id"], "--json")
    for document in (ran.document, status.document):
        rows = [
            (row["evaluator"], row["passed"], row["ended"], row["no_verdict"])
            for row in document["results"]
        ]
        assert rows == [(None, 0, 3, 3), ("exact", 2, 3, 0), ("bad", 0, 3, 3)]
    exact = document["results"][1]
    assert (round(exact["pass_rate"], 3), round(exact["score"], 3)) == (0.667, 0.667)
    assert re.search(r"exact +2 of 3 +66\.7% .* 0\.667 +0$", ran.stderr, re.MULTILINE), ran.stderr
    assert re.search(r"bad +0 of 3 .* 3$", ran.stderr, re.MULTILINE), ran.stderr


async def test_reason_of_a_failed_case_leaves_out_evaluators_that_passed_it(folder: Folder) -> None:
    """On the screen, in `--json` and in exports; each evaluator's own reason stays under `scores`."""
    folder.cases(3)
    spec = (
        "dataset: cases.jsonl\ntarget: python:judges:wrong_on_last\n"
        'evaluators: [exact, {type: python, function: "judges:approves", name: lenient}]\n'
    )
    folder.write("lenient.yaml", spec)
    ran = await folder.run(*RUN, "-c", "lenient.yaml")
    assert (ran.code, ran.document["passed"]) == (0, 2), ran.stderr
    [failed] = ran.document["failed_first"]
    assert failed["reason"] == "exact: expected '2', got 'wrong'"
    assert "lenient: approved" not in ran.stderr
    exported = await records(folder, ran.document["batch_id"])
    assert exported[-1]["reason"] == failed["reason"]
    assert [score["reason"] for score in exported[-1]["scores"]] == [
        "expected '2', got 'wrong'",
        "approved",
    ]
    assert exported[0]["reason"] == "lenient: approved"
