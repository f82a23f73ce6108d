"""Local runs: each has its own environment, folder and executors; sharing is for fleets, by labels."""

import asyncio
import fcntl
import json
import os
import signal
import termios
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from scoreline.servers.addresses import Servers
from tests.acceptance.batch_commands import TIMEOUT, Folder, Started, gone
from tests.acceptance.concurrent_runs import play_rounds
from tests.integration.worker import SCORELINE, environment
from tests.waiting import until

RUN = ("batch", "run", "--workers", "1", "--json", "--dataset", "cases.jsonl")
WHO = """
import os, pathlib, time

HERE = pathlib.Path(__file__).parent

def who(prompt):
    with open(HERE / "calls", "a") as calls:
        calls.write(os.environ.get("WHO", "none") + "\\n")
    time.sleep(0.02)
    return os.environ.get("WHO", "none")

def gated(prompt):
    answer = who(prompt)
    while not (HERE / "open").exists():
        time.sleep(0.01)
    return answer
"""
"""A target whose answer depends on the environment of its executor."""

SHADOWING = ("executor", "eventlog", "redis", "uvloop", "psycopg")
SHADOWING_PYTHON = ("scoreline", "queue", "asyncio", "typing", "json")
WATCHING = "SELECT 1 FROM pg_stat_activity WHERE application_name = 'scoreline batch'"

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def folder(tmp_path: Path, redis_url: str, postgres_url: str) -> Folder:
    return prepared(Folder(tmp_path, redis_url, postgres_url), "A", cases=60)


def prepared(folder: Folder, who: str, *, cases: int) -> Folder:
    """Write a target that returns $WHO, and cases that expect one value of it."""
    folder.write("app.py", WHO)
    line = f'{{"input": "%d", "expected": "{who}"}}\n'
    folder.write("cases.jsonl", "".join(line % number for number in range(cases)))
    return folder


async def test_local_runs_at_once_keep_their_environments_apart(folder: Folder, tmp_path: Path) -> None:
    """Two runs and a fleet on the same servers: each answer comes from the run's own environment."""
    other = prepared(_beside(folder, tmp_path / "other"), "B", cases=60)
    target = ("--target", "python:app:who", "--evaluator", "exact")
    async with AsyncExitStack() as stack:
        for service in ("coordinator", "worker"):
            await stack.enter_async_context(folder.started(service, "start", WHO="fleet"))
        one, two = await asyncio.gather(
            folder.run(*RUN, *target, WHO="A"), other.run(*RUN, *target, WHO="B")
        )
    assert (one.code, one.document["passed"], one.document["total"]) == (0, 60, 60), one.stderr
    assert (two.code, two.document["passed"], two.document["total"]) == (0, 60, 60), two.stderr
    assert (set(folder.calls), set(other.calls)) == ({"A"}, {"B"})


async def test_a_batch_runs_where_its_labels_are_declared(folder: Folder) -> None:
    """Without such an executor, status names the labels and the command; with one, all run there."""
    asked = ("--target", "python:app:who", "--evaluator", "exact", "--distributed", "--workers", "0")
    async with AsyncExitStack() as stack:
        for service in ("coordinator", "storage-worker", "worker"):
            await stack.enter_async_context(folder.started(service, "start", WHO="plain"))
        left = await folder.run(*RUN, *asked, "--require", "gpu", "--require", "region=eu", "--detach")
        batch_id = left.document["batch_id"]

        async def missing() -> bool:
            status = await folder.run("batch", "status", batch_id)
            assert "No executor is alive" in status.stdout or "requires" in status.stdout
            return "scoreline worker start --label gpu --label region=eu" in status.stdout

        await until(missing, TIMEOUT)
        labels = {"EVAL_WORKER_LABELS": "region=eu,ssd", "WHO": "A"}
        await stack.enter_async_context(
            folder.started("worker", "start", "--id", "labelled", "--label", "gpu", **labels)
        )
        watched = await folder.run("batch", "status", batch_id, "--watch", "--json")
    assert watched.code == 0, watched.stderr
    assert (len(folder.calls), set(folder.calls)) == (60, {"A"})


async def test_the_newest_of_two_resumes_serves_the_batch(folder: Folder) -> None:
    """The run that is replaced ends by itself, and pauses nothing; the other completes the batch."""
    target = ("--target", "python:app:gated", "--evaluator", "exact", "--concurrency", "1")
    async with folder.started(*RUN, *target, WHO="A") as first:
        await until(lambda: folder.calls, TIMEOUT)
        batch_id = folder.batch_id()
        async with folder.started("batch", "resume", batch_id, "--json", WHO="A") as second:
            family = first.family()
            await until(lambda: len(folder.calls) > 1, TIMEOUT)
            folder.write("open", "")
            ended, completed = await first.end(), await second.end()
    assert ended.code == 4, ended.stderr
    assert f"{batch_id} is served by another command now" in ended.stderr
    assert (completed.code, completed.document["passed"]) == (0, 60), completed.stderr
    await until(lambda: gone(family), 60)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_pauses_the_batch_and_ends_every_process(
    folder: Folder, number: signal.Signals
) -> None:
    """As Ctrl-C does: with 130, the signal's name on record, and no process left."""
    await paused_by(number, folder)


async def test_an_interrupted_batch_is_paused_and_runs_on_in_no_other_run(folder: Folder) -> None:
    """The reason is on record, status shows how to go on, and the next run calls its target no more."""
    batch_id = await paused_by(signal.SIGINT, folder)
    calls = len(folder.calls)
    beside = await folder.run("batch", "run", "--mode", "simulated", "--limit", "50", "--workers", "2")
    assert (beside.code, len(folder.calls)) == (0, calls), beside.stderr
    status = await folder.run("batch", "status", batch_id)
    hint = f"To continue: scoreline batch resume {batch_id}"
    assert f"Paused: interrupted by SIGINT. {hint}" in status.stdout
    resumed = await folder.run("batch", "resume", batch_id, "--workers", "1", "--json", WHO="A")
    assert (resumed.code, resumed.document["passed"]) == (0, 60), resumed.stderr


async def paused_by(number: signal.Signals, folder: Folder) -> str:
    """Send a signal to a run after some calls; returns the batch, which must be paused with the reason."""
    target = ("--target", "python:app:who", "--evaluator", "exact", "--concurrency", "1")
    async with folder.started(*RUN, *target, WHO="A") as running:
        await until(lambda: len(folder.calls) >= 3, TIMEOUT)
        family = running.family()
        running.process.send_signal(number)
        stopped = await running.end()
    batch_id, reason = str(stopped.document["batch_id"]), f"interrupted by {number.name}"
    assert (stopped.code, stopped.document["status"], stopped.document["reason"]) == (130, "paused", reason)
    assert f"{reason}: pausing {batch_id}" in stopped.stderr
    assert f"No process is left running. To continue: scoreline batch resume {batch_id}" in stopped.stderr
    count = f"{folder.ended()} of 60 ended"
    assert f"{batch_id} is paused: {reason}; {count}. " in stopped.stderr, stopped.stderr
    assert (stopped.document["ended"], stopped.document["total"]) == (folder.ended(), 60)
    await until(lambda: gone(family), 60)
    assert len(folder.calls) < 60
    return batch_id


async def test_an_interrupt_before_anything_is_accepted_prints_one_line(folder: Folder) -> None:
    """While modules are imported, and while the command prepares: one line, 130, and no traceback."""
    asked = (*RUN, "--target", "python:app:who", "--evaluator", "exact")
    for library in ("typer", "rich", "psycopg", "scoreline.local.run", "scoreline.submit.preflight"):
        folder.write(
            "sitecustomize.py",
            "import os, signal, sys\n\nclass Interrupting:\n"
            "    def find_spec(self, name, path=None, target=None):\n"
            f"        if name == {library!r} and 'batch' in sys.orig_argv:\n"
            "            os.kill(os.getpid(), signal.SIGINT)\n\n"
            "sys.meta_path.insert(0, Interrupting())\n",
        )
        ran = await folder.run(*asked, PYTHONPATH=str(folder.root))
        expected = (130, "", "interrupted: no batch was accepted, and nothing runs\n")
        assert (ran.code, ran.stdout, ran.stderr) == expected, library
    assert not folder.ask("SELECT batch_id FROM batches")


async def test_an_interrupt_of_a_completed_batch_pauses_nothing(folder: Folder) -> None:
    """SIGINT while the processes of a completed batch stop: report, export, gate, exit code are there."""
    asked = ("--target", "python:app:who", "--evaluator", "exact", "--limit", "3", "-o", "end.csv")
    async with folder.started(*RUN, *asked, "--min-pass-rate", "1", WHO="B") as running:
        assert running.process.stderr
        while b"completed 3 of 3" not in (line := await running.process.stderr.readline()):
            assert line, "the batch ended without its last line of progress"
        running.interrupt()
        ended = await running.end()
    assert (ended.code, ended.document["status"], ended.document["completed"]) == (100, "completed", 3), (
        ended.stderr
    )
    assert len((folder.root / "end.csv").read_text().splitlines()) == 4
    assert "below --min-pass-rate 100.0%" in ended.stderr
    assert "pausing" not in ended.stderr
    assert "batch resume" not in ended.stderr


async def test_a_killed_command_leaves_a_batch_that_nothing_works_on(folder: Folder) -> None:
    """kill -9 records no pause; its processes end, no other run takes it over, status and list show it."""
    target = ("--target", "python:app:gated", "--evaluator", "exact", "--concurrency", "1")
    async with folder.started(*RUN, *target, WHO="A") as running:
        await until(lambda: folder.calls, TIMEOUT)
        family, batch_id = running.family(), folder.batch_id()
        running.process.kill()
        folder.write("open", "")
    await until(lambda: gone(family), 75)
    calls = len(folder.calls)
    beside = await folder.run("batch", "run", "--mode", "simulated", "--limit", "50", "--workers", "2")
    assert (beside.code, len(folder.calls)) == (0, calls), beside.stderr
    folder.change("UPDATE batches SET accepted_at = accepted_at - interval '1 minute'")
    again = f"To continue: scoreline batch resume {batch_id}"
    status, listed = await folder.run("batch", "status", batch_id), await folder.run("batch", "list")
    assert "No process serves it: the command that ran it has ended" in status.stdout, status.stdout
    watched = await folder.run("batch", "status", batch_id, "--watch")
    assert (status.code, watched.code) == (0, 4), watched.stderr
    for ran in (status, watched):
        assert (ran.stdout + ran.stderr).count(again) == 1, ran.stdout + ran.stderr
        assert "coordinator start" not in ran.stdout + ran.stderr
        assert "--watch" not in ran.stdout
    assert f"{batch_id}: no process serves it. {again}" in listed.stderr


async def test_watching_a_fleet_stops_alone(folder: Folder) -> None:
    """Without --workers, --distributed only watches: after Ctrl-C the batch goes on, as printed."""
    asked = ("--target", "python:app:who", "--evaluator", "exact", "--distributed", "--workers", "0")
    async with folder.started(*RUN, *asked) as running:
        await until(lambda: folder.ask("SELECT total FROM batches WHERE total IS NOT NULL"), TIMEOUT)
        await until(lambda: folder.ask(WATCHING), TIMEOUT)
        running.interrupt()
        stopped = await running.end()
    batch_id = stopped.document["batch_id"]
    assert (stopped.code, stopped.document["status"]) == (130, "running"), stopped.stderr
    assert f"{batch_id} continues in the fleet: only watching has stopped" in stopped.stderr
    assert f"To pause it: scoreline batch pause {batch_id}" in stopped.stderr


async def test_a_detached_batch_outlives_its_terminal(folder: Folder) -> None:
    """The terminal is closed under the command's session; the batch completes all the same."""
    target = ("--target", "python:app:gated", "--evaluator", "exact", "--detach")
    process, terminal = await _in_terminal(folder, *RUN, *target)
    assert await asyncio.wait_for(process.wait(), TIMEOUT) == 0
    await until(lambda: folder.calls, TIMEOUT)
    os.close(terminal)
    folder.write("open", "")
    watched = await folder.run("batch", "status", folder.batch_id(), "--watch", "--json")
    assert json.loads(watched.stdout.splitlines()[-1])["passed"] == 60


async def test_a_lost_terminal_pauses_the_batch(folder: Folder) -> None:
    """The terminal of a run in the foreground is closed: the batch is paused, and its processes end."""
    target = ("--target", "python:app:who", "--evaluator", "exact", "--concurrency", "1")
    process, terminal = await _in_terminal(folder, *RUN, *target)
    await until(lambda: len(folder.calls) >= 3, TIMEOUT)
    family = Started(process).family()
    os.close(terminal)
    assert await asyncio.wait_for(process.wait(), TIMEOUT) == 130
    await until(lambda: gone(family), 60)
    assert folder.ask("SELECT state, reason FROM batches") == [("paused", "interrupted by SIGHUP")]


async def test_modules_of_the_user_do_not_take_the_place_of_ours(folder: Folder) -> None:
    """Files named like our modules, our libraries' and Python's lie beside it: it runs with its own."""
    for name in (*SHADOWING, *SHADOWING_PYTHON):
        folder.write(f"{name}.py", f"raise RuntimeError('{name}.py beside the code was imported')")
    folder.write("providers.py", "def answer(prompt):\n    return 'A'\n")
    folder.write("app.py", "import providers\n\ndef who(prompt):\n    return providers.answer(prompt)\n")
    asked = (*RUN, "--target", "python:app:who", "--evaluator", "exact")
    ran = await folder.run(*asked)
    for name in SHADOWING_PYTHON:  # in PYTHONPATH these break Python itself
        (folder.root / f"{name}.py").unlink()
    on_path = await folder.run(*asked, PYTHONPATH=str(folder.root))
    assert (ran.code, ran.document["passed"], "started again" in ran.stderr) == (0, 60, False), ran.stderr
    assert (on_path.code, on_path.document["passed"]) == (0, 60), on_path.stderr


async def test_a_process_that_cannot_start_stops_the_run(folder: Folder) -> None:
    """After three tries its last line and its log are named, the batch is paused, the exit code is 1."""
    folder.write(
        "sitecustomize.py",
        "import sys\n\nif {'worker', 'scoreline.cli.fork_server'} & set(sys.orig_argv):\n"
        "    sys.exit('ImportError: a broken installation')\n",
    )
    ran = await folder.run(
        *(*RUN, "--target", "python:app:who", "--evaluator", "exact"), PYTHONPATH=str(folder.root)
    )
    batch_id = ran.document["batch_id"]
    log = folder.data / "logs" / f"{batch_id}.log"
    reason = "executor 0 could not start, 3 times in a row: SystemExit: ImportError: a broken installation"
    assert (ran.code, ran.document["status"], ran.document["reason"]) == (1, "paused", reason), ran.stderr
    assert f"error: {reason}. Its log: {log}" in ran.stderr
    assert ran.stderr.count("executor 0 ended (code 1): started again") == 2
    assert log.read_text().count("SystemExit: ImportError") == 3
    status = await folder.run("batch", "status", batch_id)
    assert f"scoreline batch resume {batch_id}" in status.stdout


def _beside(folder: Folder, root: Path) -> Folder:
    """Make another folder that uses the same servers."""
    root.mkdir()
    return Folder(root, folder.environ["EVAL_REDIS_URL"], folder.environ["EVAL_POSTGRES_URL"])


async def _in_terminal(folder: Folder, *arguments: str) -> tuple[asyncio.subprocess.Process, int]:
    """Run a command as the leader of a session with a terminal of its own, which is returned."""
    terminal, theirs = os.openpty()
    process = await asyncio.create_subprocess_exec(
        *(SCORELINE, *arguments),
        cwd=folder.root,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=environment(**folder.environ, WHO="A"),
        start_new_session=True,
        preexec_fn=partial(fcntl.ioctl, 0, termios.TIOCSCTTY, 0),
    )
    os.close(theirs)
    return process, terminal


async def test_concurrent_runs_keep_to_themselves(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """Two rounds of two to four runs with environments, folders and interpreters of their own."""
    runs = await play_rounds(tmp_path, Servers(redis_url, postgres_url), rounds=2, seed=11)
    assert runs >= 4
