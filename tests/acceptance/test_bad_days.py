"""Processes and servers that die under a batch, and interrupts: nothing is lost, nothing is left behind."""

import asyncio
import os
import signal
from functools import partial
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import HEAVY, TIMEOUT, Folder, Started, gone
from tests.acceptance.peak_memory import measured
from tests.waiting import until

RUN = ("batch", "run", "--json")
GATED = ("--dataset", "cases.jsonl", "--target", "python:app:gated", "--evaluator", "exact")

pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    return Folder(tmp_path, redis_url, postgres_url)


async def test_an_interrupt_drains_active_tasks_and_a_second_one_does_not(folder: Folder) -> None:
    """130 both times and no process left; `resume` goes on, and no answered target is called again."""
    folder.cases(8)
    slots = ("--workers", "1", "--concurrency", "2")
    async with folder.started(*RUN, *GATED, *slots) as running:
        await until(lambda: len(folder.calls) >= 2, TIMEOUT)
        first, batch_id = running.family(), folder.batch_id()
        running.interrupt()
        paused = f"SELECT 1 FROM batches WHERE batch_id = '{batch_id}' AND state = 'paused'"
        await until(lambda: folder.ask(paused), TIMEOUT)
        folder.write("open", "")
        drained = await running.end()
    assert (drained.code, drained.document["status"]) == (130, "paused"), drained.stderr
    assert f"interrupted by SIGINT: pausing {batch_id}. Nothing new is started" in drained.stderr
    assert drained.stderr.splitlines()[-1].endswith(f"To continue: scoreline batch resume {batch_id}")
    answered = len(folder.calls)
    assert answered >= 2

    (folder.root / "open").unlink()
    async with folder.started("batch", "resume", batch_id, *slots) as running:
        await until(lambda: len(folder.calls) >= answered + 2, TIMEOUT)
        second = running.family()
        running.interrupt()
        await asyncio.wait_for(_printed(running, b"pausing"), TIMEOUT)
        running.interrupt()
        stopped = await running.end()
    assert (stopped.code, stopped.stdout) == (130, "")
    assert stopped.stderr.splitlines()[-1].endswith(f"To continue: scoreline batch resume {batch_id}")
    await until(lambda: gone(first + second), 60)

    folder.write("open", "")
    resumed = await folder.run("batch", "resume", batch_id, *slots, "--json")
    assert (resumed.code, resumed.document["completed"], resumed.document["passed"]) == (0, 8, 8), (
        resumed.stderr
    )
    # Drained tasks are called once; those active at the second interrupt are called again.
    assert sorted(set(folder.calls), key=int) == [str(number) for number in range(8)]
    assert all(folder.calls.count(asked) == 1 for asked in folder.calls[:answered])


def _was_asked(folder: Folder, times: int) -> bool:
    return len(folder.calls) >= times


async def _printed(running: Started, words: bytes) -> None:
    assert running.process.stderr
    while line := await running.process.stderr.readline():
        if words in line:
            return


async def test_a_killed_command_takes_everything_with_it_and_the_batch_can_be_resumed(
    tmp_path: Path,
) -> None:
    """kill -9 of the command in mid-run: servers and fleet end by themselves; `resume` loses nothing."""
    folder = Folder(tmp_path)
    folder.cases(8)
    slots = ("--workers", "1", "--concurrency", "2")
    async with folder.started(*RUN, *GATED, *slots, EVAL_WORKER_DRAIN="1") as running:
        await until(lambda: len(folder.calls) >= 2, TIMEOUT)
        family, batch_id = running.family(), folder.batch_id()
        running.process.kill()
        folder.write("open", "")
    await until(lambda: gone(family), 75)
    await folder.at_rest()
    resumed = await folder.run("batch", "resume", batch_id, *slots, "--json")
    assert (resumed.code, resumed.document["completed"], resumed.document["passed"]) == (0, 8, 8), (
        resumed.stderr
    )
    verified = await folder.run("replay", "--batch", batch_id, "--verify")
    assert (verified.code, "every evaluation has ended" in verified.stdout) == (0, True), verified.stderr
    await folder.at_rest()


async def test_two_commands_share_the_servers_that_either_has_started(tmp_path: Path) -> None:
    """Both start with none running; the first to end does not stop them under the other."""
    folder = Folder(tmp_path)
    one, other = await asyncio.gather(
        folder.run(*RUN, "--mode", "simulated", "--workers", "1", "--limit", "20"),
        folder.run(*RUN, "--mode", "simulated", "--workers", "1", "--limit", "300"),
    )
    assert (one.code, one.document["completed"]) == (0, 20), one.stderr
    assert (other.code, other.document["completed"]) == (0, 300), other.stderr
    await folder.at_rest()


@HEAVY
async def test_a_batch_survives_the_death_of_everything_under_it(tmp_path: Path) -> None:
    """Two executors, storage worker, coordinator, Redis and Postgres, one after the other: it completes."""
    folder = Folder(tmp_path)
    servers = folder.data / "servers"
    async with folder.started(*RUN, "--mode", "simulated", "--workers", "4", "--limit", "10000") as running:
        await until(lambda: folder.ended() >= 500, TIMEOUT)
        for words in (["worker"], ["worker"], ["storage-worker"], ["coordinator"]):
            assert running.kill_child(*words)
        os.kill(int((servers / "valkey.pid").read_text()), signal.SIGKILL)
        seen = folder.ended()
        await until(lambda: folder.ended() > seen, TIMEOUT)
        os.kill(int((servers / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)
        ran = await running.end()
    assert (ran.code, ran.document["completed"], ran.document["pending"]) == (0, 10_000, 0), ran.stderr
    assert "executor 0 ended (killed by signal 9): started again" in ran.stderr
    verified = await folder.run("replay", "--batch", ran.document["batch_id"], "--verify")
    assert verified.code == 0, verified.stdout + verified.stderr
    await folder.at_rest()


@HEAVY
async def test_a_case_that_kills_its_executors_is_given_up(folder: Folder) -> None:
    """Three executors are lost to it; then it is a dead letter, and the others have passed."""
    folder.cases(1)
    async with folder.started(*RUN, *GATED, "--workers", "1", "--timeout", "600") as running:
        for lost in (1, 2, 3):
            await until(partial(_was_asked, folder, lost), TIMEOUT)
            assert running.kill_child("worker")
        ran = await running.end()
    assert (ran.code, ran.document["dead_letters"]) == (3, 1), ran.stderr
    letters = await folder.run("batch", "dlq", ran.document["batch_id"], "--json")
    assert "its executor was lost 3 times" in letters.stdout


def test_a_large_dataset_is_submitted_without_being_held(folder: Folder) -> None:
    """Thirty megabytes of cases more make the command that submits them larger by less than ten."""
    line = '{{"id": "{}", "input": "' + "x" * 2_000 + '", "expected": "x"}}\n'
    folder.write("few.jsonl", "".join(line.format(n) for n in range(5_000)))
    folder.write("many.jsonl", "".join(line.format(n) for n in range(20_000)))
    asked = (
        *RUN,
        "--target",
        "simulated",
        "--evaluator",
        "exact",
        "--distributed",
        "--detach",
        "--dataset",
    )
    few, many = (measured(folder, *asked, name) for name in ("few.jsonl", "many.jsonl"))
    assert (few.code, many.code) == (0, 0), many.printed
    assert many.kilobytes - few.kilobytes < 10_000, (few, many)
    assert folder.ask("SELECT sum(total) FROM batches") == [(25_000,)]
