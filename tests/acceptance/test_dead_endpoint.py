"""An endpoint that has never answered pauses its batch within a minute; nothing is used up by that."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from time import monotonic

import pytest

from tests.acceptance.batch_commands import HEAVY, Folder

pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

RUN = ("batch", "run", "--workers", "1", "--dataset", "cases.jsonl")


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    made = Folder(tmp_path, redis_url, postgres_url)
    made.cases(8)
    return made


@pytest.fixture
def port() -> int:
    """A port of this machine at which nothing listens."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@asynccontextmanager
async def echoing(port: int) -> AsyncIterator[None]:
    """Answer every request with its input."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.partition("content-length:")[2].split()[0])
        echoed = json.loads(await reader.readexactly(length))["input"].encode()
        writer.write(
            b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(echoed) + echoed
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", port):
        yield


async def test_a_target_that_never_answered_pauses_the_batch_and_resume_completes_it(
    folder: Folder, port: int
) -> None:
    """Connection refused, no retries: exit code 4, no dead letter; once the server runs, all complete."""
    url = f"http://127.0.0.1:{port}/ask"
    flags = ("--target", url, "--evaluator", "exact", "--retries", "0", "--fail-fast-after", "3")
    begun = monotonic()
    ran = await folder.run(*RUN, *flags)
    assert (ran.code, monotonic() - begun < 60) == (4, True), ran.stderr
    reason = f"Paused: target {url}: http://127.0.0.1:{port}: connection refused; it has not answered yet."
    resume = f"To continue: scoreline batch resume {folder.batch_id()}"
    assert reason in ran.stderr
    assert resume in ran.stderr
    status = await folder.run("batch", "status", folder.batch_id(), "--json")
    document = status.document
    assert (document["dead_letters"], document["pending"], document["retried"]) == (0, 8, 0)
    async with echoing(port):
        again = await folder.run("batch", "resume", folder.batch_id(), "--workers", "1", "--json")
    assert (again.code, again.document["passed"], again.document["dead_letters"]) == (0, 8, 0), again.stderr


async def test_a_judge_whose_host_does_not_resolve_pauses_the_batch(folder: Folder) -> None:
    """As executors elsewhere may find it: the reason names evaluator and address, and answers are kept."""
    pytest.importorskip("anthropic")
    folder.environ["ANTHROPIC_API_KEY"] = "key-0123456789"
    folder.write(
        "judged.yaml",
        "dataset: cases.jsonl\ntarget: python:app:echo\nfail_fast_after: 3\nretries: 0\n"
        "evaluator: {type: llm_judge, model: anthropic/claude-haiku-4-5, name: polite, rubric: '{output}?',"
        " base_url: 'http://judge.invalid'}\n",
    )
    ran = await folder.run("batch", "run", "--workers", "1", "--no-preflight", "-c", "judged.yaml")
    assert ran.code == 4, ran.stderr
    reason = "Paused: evaluator polite: unreachable: http://judge.invalid: the host name does not resolve"
    assert reason in " ".join(ran.stderr.split()), ran.stderr
    assert folder.ask("SELECT count(*) FROM scorecards") == [(0,)]
    assert len(folder.calls) == 8


@HEAVY
async def test_a_dead_endpoint_is_found_within_a_minute_however_few_the_cases(
    folder: Folder, port: int
) -> None:
    """With the usual settings, two cases, and another target that answers: paused, and it is named."""
    folder.cases(2)
    targets = ("--target", "python:app:echo", "--target", f"http://127.0.0.1:{port}/ask")
    begun = monotonic()
    ran = await folder.run(*RUN, *targets, "--evaluator", "exact")
    assert (ran.code, monotonic() - begun < 60) == (4, True), ran.stderr
    assert f"Paused: target http://127.0.0.1:{port}/ask: " in ran.stderr
    assert folder.ask("SELECT count(*) FROM scorecards WHERE status = 'completed'") == [(2,)]
