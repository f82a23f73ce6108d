"""One definition of the pass rate, from the gate to the export, through the real command line."""

import json
from pathlib import Path
from typing import Any

from tests.acceptance.batch_commands import Folder, Ran

SOME = """
def some(prompt):
    number = int(prompt)
    if number % 4 == 0:
        raise ValueError("no answer")
    return prompt if number % 4 == 1 else "wrong"
"""
"""A quarter raises, a quarter is right, a half is wrong."""


def run_some(folder: Folder, *more: str) -> tuple[str, ...]:
    """Write the command that runs twelve cases against a target that is right three times."""
    return ("batch", "run", "--dataset", "cases.jsonl", "--target", "python:some:some", *more, "--json")


async def printed_json(folder: Folder, *arguments: str) -> list[dict[str, Any]]:
    """Run a command that prints JSON lines."""
    return [json.loads(line) for line in (await folder.run(*arguments)).stdout.splitlines()]


async def test_gate_without_an_evaluator_is_refused_before_anything_starts(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """By flags and by a spec: no batch is accepted, no target is called, and the error has what to type."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(3)
    folder.write(
        "gate.yaml",
        "dataset: cases.jsonl\ntarget: {type: python, function: 'app:echo'}\nmin_pass_rate: 0.9\n",
    )
    flags = ("--dataset", "cases.jsonl", "--target", "python:app:echo", "--min-pass-rate", "0.9")
    for ran in (
        await folder.run("batch", "run", *flags),
        await folder.run("batch", "run", "-c", "gate.yaml"),
    ):
        assert ran.code == 1
        assert "--min-pass-rate: needs an evaluator" in ran.stderr
        assert "--evaluator exact" in ran.stderr
    assert folder.ask("SELECT count(*) FROM batches") == [(0,)]
    assert folder.calls == []


async def test_a_batch_without_an_evaluator_is_not_scored_anywhere(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """The run, the list, the status, the export and JUnit show no verdict, and a later gate is refused."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(3)
    ran = await folder.run(
        "batch", "run", "--dataset", "cases.jsonl", "--target", "python:app:echo", "--json"
    )
    assert (ran.code, ran.document["pass_rate"]) == (0, None)
    assert "not scored" in ran.stderr
    assert "100.0% passed" not in ran.stderr
    batch_id = ran.document["batch_id"]
    [listed] = await printed_json(folder, "batch", "list", "--json")
    assert listed["pass_rate"] is None
    assert "not scored" in (await folder.run("batch", "list")).stdout
    records = await printed_json(folder, "batch", "export", batch_id, "-o", "-")
    assert [(each["passed"], each["verdict"]) for each in records] == [(None, None)] * 3
    assert (await folder.run("batch", "export", batch_id, "-o", "r.xml")).code == 0
    assert 'tests="3" failures="0" errors="0" skipped="3"' in (folder.root / "r.xml").read_text()
    again = await folder.run("batch", "resume", batch_id, "--min-pass-rate", "0.5")
    assert (again.code, "has no evaluator" in again.stderr) == (1, True)


async def test_every_surface_has_the_same_pass_rate(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """3 of 12 passed, 3 are dead letters: 25 % for the gate, run, list, status, export and compare."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(12)
    folder.write("some.py", SOME)
    ran: Ran = await folder.run(*run_some(folder, "--evaluator", "exact", "--min-pass-rate", "0.26"))
    assert (ran.code, ran.document["pass_rate"], ran.document["dead_letters"]) == (100, 0.25, 3)
    assert "25.0% passed of all evaluations, below --min-pass-rate 26.0%" in ran.stderr
    batch_id = ran.document["batch_id"]
    met = await folder.run("batch", "resume", batch_id, "--min-pass-rate", "0.25")
    assert met.code in {1, 3}, "met, or nothing to resume: not below the gate"
    [listed] = await printed_json(folder, "batch", "list", "--json")
    [status] = await printed_json(folder, "batch", "status", batch_id, "--json")
    [compared] = await printed_json(folder, "batch", "compare", batch_id, batch_id, "--json")
    records = await printed_json(folder, "batch", "export", batch_id, "-o", "-")
    exported = sum(each["passed"] is True for each in records) / len(records)
    sides = compared["left"]["pass_rate"], compared["right"]["pass_rate"]
    assert {listed["pass_rate"], status["pass_rate"], exported, *sides} == {0.25}
    summary = await folder.run("replay", "--batch", batch_id)
    assert "25.0% passed" in summary.stdout
    rate = (Path(__file__).parents[2] / "grafana/sql/batch_pass_rate.sql").read_text()
    assert folder.ask(rate.replace("${batch:sqlstring}", f"'{batch_id}'")) == [(0.25,)]
