"""`scoreline batch run` checks a batch before anything starts: all problems at once, nothing submitted."""

import asyncio
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder

RUN = ("batch", "run", "--workers", "1", "--json")
BROKEN = """
name: broken
dataset: words.jsonl
prompts: ["Answer {{input}}", "Answer"]
targets:
  - python:app:ecko
  - python:nowhere:echo
  - command:no-such-program
  - anthropic/claude-haiku-4-5
  - https://no-such-host.invalid/ask
evaluators:
  - numeric
  - python:app:echo
"""
PROBLEMS = (
    "python:app:ecko can't be imported",
    "python:nowhere:echo can't be imported",
    "No module named 'nowhere'",
    "there is no program 'no-such-program'",
    "ANTHROPIC_API_KEY",
    "no-such-host.invalid can't be resolved",
    "the evaluator 'numeric' can use the expected value of none of the first 3 cases",
)

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    """A folder with servers of its own, which a refused batch must not start."""
    folder = Folder(tmp_path)
    folder.environ["ANTHROPIC_API_KEY"] = ""
    folder.write("words.jsonl", '{"input": "a", "expected": "one"}\n' * 3)
    folder.cases(2)
    return folder


async def test_all_problems_are_listed_and_nothing_starts(folder: Folder) -> None:
    """Functions, program, key, host and expected values in one answer; warnings for the prompts."""
    folder.write("scoreline.yaml", BROKEN)
    ran = await folder.run(*RUN)
    assert (ran.code, ran.stdout) == (1, ""), ran.stderr
    assert [words for words in PROBLEMS if words not in ran.stderr] == [], ran.stderr
    assert "6 problems, nothing was submitted" in ran.stderr
    assert "{{input}}, which is not filled in: write {input}" in ran.stderr
    assert "has no placeholder" in ran.stderr
    assert "--no-preflight" in ran.stderr
    assert not folder.data.exists()


async def test_a_folder_without_a_spec_is_named(folder: Folder) -> None:
    """There is nothing to run: the error names the missing file and what to type."""
    ran = await folder.run("batch", "run")
    assert ran.code == 1
    assert f"There is no scoreline.yaml in {folder.root}" in " ".join(ran.stderr.split())
    assert "-c FILE" in ran.stderr


async def test_no_preflight_is_not_offered_for_what_submission_refuses(folder: Folder) -> None:
    """A missing dataset, alone or beside other problems, and cases without the expected value needed."""
    folder.write("unanswered.jsonl", '{"input": "a"}\n')
    echo, nowhere = ("--target", "python:app:echo"), ("--target", "python:nowhere:echo")
    alone, beside, unanswered = await asyncio.gather(
        folder.run(*RUN, "--dataset", "missing.jsonl", *echo, "--evaluator", "exact"),
        folder.run(*RUN, "--dataset", "missing.jsonl", *nowhere, "--evaluator", "exact"),
        folder.run(*RUN, "--dataset", "unanswered.jsonl", *echo, "--evaluator", "exact"),
    )
    for ran in (alone, beside, unanswered):
        assert (ran.code, ran.stdout) == (1, ""), ran.stderr
        assert "--no-preflight" not in ran.stderr
    assert "missing.jsonl" in alone.stderr
    assert "Nothing was submitted." in alone.stderr
    assert "2 problems, nothing was submitted" in beside.stderr
    assert "has no expected value" in unanswered.stderr


async def test_a_batch_can_be_submitted_all_the_same(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """`--no-preflight` submits it; what can't run is a dead letter then."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(1)
    wanted = ("--dataset", "cases.jsonl", "--target", "python:nowhere:echo", "--evaluator", "exact")
    refused, ran = await asyncio.gather(
        folder.run(*RUN, *wanted), folder.run(*RUN, *wanted, "--no-preflight")
    )
    assert (refused.code, refused.stdout) == (1, "")
    assert (ran.code, ran.document["dead_letters"]) == (3, 1), ran.stderr


async def test_an_export_never_replaces_what_the_batch_reads(folder: Folder) -> None:
    """Dataset, recorded answers and spec are left as they are, and nothing starts."""
    folder.write("recorded.jsonl", '{"output": "one"}\n' * 3)
    spec = "{dataset: words.jsonl, targets: ['recorded:recorded.jsonl'], evaluators: [exact]}"
    folder.write("scoreline.json", spec)
    for name in ("words.jsonl", "recorded.jsonl", "scoreline.json"):
        before = (folder.root / name).read_bytes()
        refused = await folder.run(*RUN, "-c", "scoreline.json", "-o", name)
        assert (refused.code, refused.stdout) == (1, "")
        assert f"error: -o {name} would replace a file that this batch reads" in refused.stderr
        assert (folder.root / name).read_bytes() == before
    assert not (folder.root / "data" / "servers").exists()


async def test_a_local_run_needs_an_executor(folder: Folder) -> None:
    """`--workers 0` is for batches of a fleet."""
    options = ("--dataset", "words.jsonl", "--target", "echo", "--workers", "0")
    refused = await folder.run("batch", "run", *options)
    assert (refused.code, refused.stdout) == (2, "")
    assert "0 executors goes with --distributed" in refused.stderr
