"""`scoreline batch run` from a folder to scorecards: how it ends, what it prints, what is kept."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import TIMEOUT, Folder, gone
from tests.integration.sandboxed import needs_sandbox
from tests.waiting import until

DATA = Path(__file__).parents[3] / "shared" / "data"
RUN = ("batch", "run", "--workers", "1", "--json")
ONE = ("--dataset", "cases.jsonl", "--evaluator", "exact")

pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    return Folder(tmp_path, redis_url, postgres_url)


async def garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer what is no HTTP, or send people elsewhere."""
    head = await reader.readuntil(b"\r\n\r\n")
    if b"/elsewhere" in head:
        writer.write(b"HTTP/1.1 307 Go\r\nLocation: http://elsewhere.invalid/\r\nContent-Length: 0\r\n\r\n")
    else:
        writer.write(b"\x00\xff no HTTP at all\r\n\r\n")
    await writer.drain()
    writer.close()


@pytest.fixture
async def server() -> AsyncIterator[str]:
    """A server that means no good."""
    async with await asyncio.start_server(garbage, "127.0.0.1", 0) as server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


async def test_every_bad_target_stops_only_itself(folder: Folder, server: str) -> None:
    """A target that raises, hangs, exits, dies, is missing or answers garbage fails its own cases only."""
    folder.cases(1)
    kinds = {
        "python:app:echo": None,
        "python:app:prints": None,
        "python:app:raises": ("python", "no answer to 0"),
        "python:app:hangs": ("timeout", "no answer within 8 s"),
        "python:app:leaves": ("python", "SystemExit"),
        "python:app:dies": ("host_lost", "ended with code 7"),
        "python:app:ecko": ("import", "no attribute 'ecko'"),
        "python:nowhere:echo": ("import", "No module named 'nowhere'"),
        f"{server}/garbage": ("connection", ""),
        f"{server}/elsewhere": ("redirect", "http://elsewhere.invalid"),
    }
    targets = [word for target in kinds for word in ("--target", target)]
    ran = await folder.run(*RUN, *ONE, *targets, "--timeout", "8", "--retries", "0", "--no-preflight")
    document = ran.document
    assert (ran.code, document["status"], document["total"], document["dead_letters"]) == (
        3,
        "completed",
        10,
        8,
    ), ran.stderr
    assert [each["target"] for each in document["variants"] if each["passed"]] == list(kinds)[:2]
    letters = await folder.run("batch", "dlq", document["batch_id"], "--json")
    found = {each["evaluation_id"]: each for each in map(json.loads, letters.stdout.splitlines())}
    for number, (target, why) in enumerate(kinds.items(), 1):
        letter = found.get(f"{document['batch_id']}.{number:08}")
        if why is None:
            assert letter is None, (target, letter)
            continue
        assert letter, target
        assert (letter["kind"], why[1] in letter["message"]) == (why[0], True), (target, letter)
    again = f"scoreline batch dlq {document['batch_id']}"
    assert again in ran.stderr
    assert "Traceback" not in ran.stderr


async def test_the_second_run_takes_its_answers_from_the_first(folder: Folder) -> None:
    """With --cache no target is called twice; --min-pass-rate decides how both end, whatever was cached."""
    folder.write("cases.jsonl", '{"input": "a", "expected": "a"}\n{"input": "b", "expected": "c"}\n')
    asked = (*RUN, *ONE, "--target", "python:app:echo", "--cache", "--min-pass-rate")
    first = await folder.run(*asked, "0.6")
    assert (first.code, first.document["passed"], sorted(folder.calls)) == (100, 1, ["a", "b"]), (
        first.stderr
    )
    assert "50.0% passed of all evaluations, below --min-pass-rate 60.0%" in first.stderr
    second = await folder.run(*asked, "0.5")
    assert (second.code, second.document["passed"], second.document["status"]) == (0, 1, "completed"), (
        second.stderr
    )
    assert len(folder.calls) == 2


async def test_a_batch_out_of_time_ends_its_active_tasks(folder: Folder) -> None:
    """--max-duration aborts calls that would hang for ever; it ends with 4, and retry is offered."""
    folder.cases(3)
    ran = await folder.run(*RUN, *ONE, "--target", "python:app:hangs", "--max-duration", "3s")
    document = ran.document
    assert (ran.code, document["status"], document["timed_out"], document["pending"]) == (
        4,
        "expired",
        3,
        0,
    ), ran.stderr
    refused = await folder.run("batch", "resume", document["batch_id"])
    assert (refused.code, refused.stdout) == (1, "")
    assert f"To retry what did not complete: scoreline batch retry {document['batch_id']}" in refused.stderr


async def test_a_detached_batch_can_be_watched_paused_and_resumed(folder: Folder) -> None:
    """It goes on without its command; tasks active at the pause are kept, the rest waits for resume."""
    folder.cases(80)  # more than could be begun before every executor has seen the pause
    asked = ("--target", "python:app:gated", "--concurrency", "2")
    left = await folder.run(*RUN, *ONE, *asked, "--detach")
    batch_id = left.document["batch_id"]
    assert (left.code, left.document["status"]) == (0, "running"), left.stderr
    assert f"scoreline batch status {batch_id} --watch" in left.stderr
    async with folder.started("batch", "status", batch_id, "--watch") as watching:
        await until(lambda: len(folder.calls) >= 2, TIMEOUT)
        paused = await folder.run("batch", "pause", batch_id, "--reason", "lunch")
        assert (paused.code, paused.stdout) == (0, ""), paused.stderr
        folder.write("open", "")
        watched = await watching.end()
    assert (watched.code, "Paused: lunch." in watched.stdout) == (4, True), watched.stderr
    [listed] = (await folder.run("batch", "list", "--status", "paused", "--json")).stdout.splitlines()
    assert json.loads(listed)["batch_id"] == batch_id
    resumed = await folder.run("batch", "resume", batch_id, "--workers", "1", "--json")
    assert (resumed.code, resumed.document["completed"]) == (0, 80), resumed.stderr
    assert sorted(folder.calls, key=int) == [str(number) for number in range(80)]
    once = await folder.run("worker", "start", "--once")
    assert (once.code, once.stdout) == (0, "")


async def test_cancelling_ends_the_run_and_is_final(folder: Folder) -> None:
    """The command ends with 4 though its target hangs, its processes with it; nothing brings it back."""
    folder.cases(3)
    async with folder.started(*RUN, *ONE, "--target", "python:app:gated") as running:
        await until(lambda: folder.calls, TIMEOUT)
        family, batch_id = running.family(), folder.batch_id()
        asked = await folder.run("batch", "cancel", batch_id, "--reason", "wrong prompt")
        ran = await running.end()
    assert (asked.code, asked.stdout) == (0, "")
    assert (ran.code, ran.document["status"], ran.document["cancelled"]) == (4, "cancelled", 3), ran.stderr
    await until(lambda: gone(family), 75)
    refused = await folder.run("batch", "resume", batch_id)
    assert (refused.code, refused.stdout) == (1, "")
    assert f"error: {batch_id} is cancelled, which is final." in refused.stderr


@pytest.mark.skipif(not DATA.is_dir(), reason="the published results are not here")
@needs_sandbox
async def test_published_results_come_out_again(folder: Folder) -> None:
    """BIG-Bench Hard, GSM8K and HumanEval, at once, by commands that share one fleet: the known figures."""
    specs: dict[str, tuple[str, float]] = {
        "boolean_expressions": (_big_bench("boolean_expressions"), 0.884),
        "date_understanding": (_big_bench("date_understanding"), 0.636),
        "object_counting": (_big_bench("object_counting"), 0.452),
        "humaneval": (HUMANEVAL, 0.5),
        "gsm8k": (GSM8K, 0.275),
    }
    async with AsyncExitStack() as stack:
        for service in ("coordinator", "storage-worker", "worker"):
            await stack.enter_async_context(folder.started(service, "start"))
        for name, (spec, _) in specs.items():
            folder.write(f"{name}.yaml", spec)
        runs = [("batch", "run", "--distributed", "--json", "-c", f"{name}.yaml") for name in specs]
        ended = await asyncio.gather(*(folder.run(*run) for run in runs))
    assert [ran.code for ran in ended] == [0] * len(specs), [ran.stderr for ran in ended]
    rates = [ran.document["pass_rate"] for ran in ended]
    assert rates == pytest.approx([rate for _, rate in specs.values()])
    assert [each["passed"] for each in ended[-1].document["variants"]] == [45, 65]


def _big_bench(task: str) -> str:
    path = DATA / "bbh" / f"{task}_few_shot_template_0-255000.json"
    return f"dataset: {{path: {path}, records: outputs}}\ntarget: recorded:{path}\nevaluator: exact\n"


HUMANEVAL = rf"""
dataset: {{path: {DATA}/humaneval/example_problem.jsonl, id: task_id}}
target: recorded:{DATA}/humaneval/example_samples.jsonl
evaluator: {{type: code, program: "{{prompt}}{{output}}\n{{test}}\ncheck({{entry_point}})", timeout: 3}}
"""
GSM8K = rf"""
dataset: {DATA}/gsm8k/test_first200.jsonl
targets:
  - type: recorded
    label: 6b_finetuning
    path: {DATA}/gsm8k/example_model_solutions_first200_finetuning.jsonl
    output: 6b_finetuning.solution
  - type: recorded
    label: 175b_finetuning
    path: {DATA}/gsm8k/example_model_solutions_first200_finetuning.jsonl
    output: 175b_finetuning.solution
evaluator: {{type: numeric, extract: 'A:\s*(.+)$', expected_extract: '####\s*(.+)$'}}
"""
