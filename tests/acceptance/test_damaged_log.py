"""The append-only file of the embedded Valkey, damaged between commands and under a running batch."""

import os
import signal
from pathlib import Path

import pytest

from tests.acceptance.batch_commands import Folder
from tests.waiting import until

pytestmark = pytest.mark.timeout(300)  # many processes, on a machine that may have much else to do

TOTAL = 24
ASKED = ("--dataset", "cases.jsonl", "--target", "python:app:gated", "--evaluator", "exact")
RUN = ("--workers", "1", "--concurrency", "4", "--json")
MOVED = "Valkey: the append-only file is damaged"


def incremental(folder: Folder) -> Path:
    """Return the file that the server appends to."""
    return max((folder.data / "servers" / "valkey" / "appendonlydir").glob("*.incr.aof"))


def put_nuls_at_the_end(file: Path) -> None:
    """Damage a file as a power loss does on some file systems."""
    with file.open("ab") as stream:
        stream.write(b"\0" * 4096)


def put_garbage_inside(file: Path) -> None:
    """Damage a file as a failing disk does."""
    with file.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        stream.write(os.urandom(512))


async def verified(folder: Folder, batch_id: str) -> bool:
    """Whether the tables equal the log, by the command's own checker."""
    ran = await folder.run("replay", "--batch", batch_id, "--verify")
    assert ran.code == 0, ran.stdout + ran.stderr
    return MOVED not in ran.stderr


async def test_a_log_damaged_under_a_running_batch_is_replaced(tmp_path: Path) -> None:
    """kill -9 with NULs in the file: the run goes on, every case ends once, the file is kept and named."""
    folder = Folder(tmp_path)
    folder.cases(TOTAL)
    async with folder.started("batch", "run", *ASKED, *RUN) as run:
        await until(lambda: len(folder.calls) >= 4, 90)
        pid_file = folder.data / "servers" / "valkey.pid"
        killed = pid_file.read_text()
        put_nuls_at_the_end(incremental(folder))
        os.kill(int(killed), signal.SIGKILL)
        await until(lambda: pid_file.exists() and pid_file.read_text() not in {"", killed}, 60)
        (folder.root / "open").touch()
        ran = await run.end()
    assert (ran.code, ran.document["passed"]) == (0, TOTAL), ran.stderr
    [kept] = (folder.data / "servers").glob("valkey.damaged-*")
    [line] = [line for line in ran.stderr.splitlines() if MOVED in line]
    assert str(kept) in line
    assert "recovered from Postgres" in line
    assert set(folder.calls) == {str(n) for n in range(TOTAL)}
    assert await verified(folder, ran.document["batch_id"]), "the line is printed once"


async def test_a_log_damaged_between_two_commands_is_replaced(tmp_path: Path) -> None:
    """A paused batch is resumed to its end, though nothing that Redis held of it can be read."""
    folder = Folder(tmp_path)
    folder.cases(TOTAL)
    async with folder.started("batch", "run", *ASKED, *RUN) as run:
        await until(lambda: len(folder.calls) >= 4, 90)
        (folder.root / "open").touch()
        await until(lambda: folder.ended() >= 4, 60)
        batch_id = folder.batch_id()
        run.interrupt()
        await run.end()
    await folder.at_rest()
    put_garbage_inside(incremental(folder))
    resumed = await folder.run("batch", "resume", batch_id, *RUN)
    assert (resumed.code, resumed.document["passed"]) == (0, TOTAL), resumed.stderr
    assert resumed.stderr.count(MOVED) == 1, resumed.stderr
    assert await verified(folder, batch_id)
