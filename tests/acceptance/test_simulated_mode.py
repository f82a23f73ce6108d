"""`--mode simulated` through the command line: nothing is called, whatever the spec names."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder

RUN = ("batch", "run", "--workers", "1", "--json")
CASES = 12

IMPORTED = """
import pathlib
pathlib.Path(__file__).with_name("imported").write_text("")

def answer(prompt):
    return prompt

def judge(output):
    return True
"""

SPEC = """
name: dry
dataset: cases.jsonl
targets:
  - {url}/answer
  - python:paid:answer
  - "command:touch /tmp/called"
  - {{type: anthropic, model: claude-haiku-4-5, base_url: "{url}"}}
evaluators:
  - exact
  - python:paid:judge
  - {{type: code, program: "assert {{output}}"}}
  - {{type: llm_judge, name: tone, model: openai/gpt-5, base_url: "{url}", rubric: "Is {{output}} polite?"}}
"""


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.environ |= {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k"}
    folder.write("paid.py", IMPORTED)
    folder.cases(CASES)
    return folder


@pytest.fixture
async def calls() -> AsyncIterator[tuple[str, list[bytes]]]:
    """A server for targets and judges, its address, and what it was asked."""
    asked: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        asked.append(await reader.readline())
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}")
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", asked


async def test_nothing_is_called_whatever_the_spec_names(
    folder: Folder, calls: tuple[str, list[bytes]]
) -> None:
    """Targets and evaluators that call, import or start something are simulated, and named so."""
    url, asked = calls
    folder.write("scoreline.yaml", SPEC.format(url=url))
    ran = await folder.run(*RUN, "-c", "scoreline.yaml", "--mode", "simulated")
    assert (ran.code, ran.document["completed"], ran.document["dead_letters"]) == (0, 4 * CASES, 0), (
        ran.stderr
    )
    assert ran.document["cost_usd"] == 0
    assert asked == []
    assert not (folder.root / "imported").exists()
    assert "--mode simulated, nothing is called: " in ran.stderr
    exported = await folder.run("batch", "export", ran.document["batch_id"], "-o", "-", "--format", "jsonl")
    records = [json.loads(line) for line in exported.stdout.splitlines()]
    assert {record["target"] for record in records} == {
        f"simulated: {url}/answer",
        "simulated: python:paid:answer",
        "simulated: command:touch /tmp/called",
        "simulated: anthropic/claude-haiku-4-5",
    }
    judges = [score["evaluator"] for score in records[0]["scores"]]
    assert judges == ["exact", "python (simulated)", "code (simulated)", "tone (simulated)"]


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--target", "python:paid:answer"), "--target: python:paid:answer would be called"),
        (("--evaluator", "python:paid:judge"), "--evaluator: python would be called"),
        (("--batch-api",), "--batch-api: a provider batch"),
    ],
)
async def test_flags_that_ask_for_a_call_are_refused(
    folder: Folder, flags: tuple[str, ...], words: str
) -> None:
    """A target, an evaluator or provider batches beside the mode: an error that names both ways out."""
    ran = await folder.run(*RUN, "--dataset", "cases.jsonl", "--mode", "simulated", *flags)
    assert ran.code == 1
    assert words in ran.stderr
    assert "Leave out --mode simulated" in ran.stderr
    assert not (folder.root / "imported").exists()
    assert folder.ask("SELECT 1 FROM batches") == []
