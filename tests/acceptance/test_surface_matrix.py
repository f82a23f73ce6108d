"""Commands in surroundings that users have: no colour, no terminal, a closed pipe, another time zone, …"""

import asyncio
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.acceptance.batch_commands import Folder
from tests.integration.worker import SCORELINE, environment

COMMANDS = {
    "status": ("batch", "status", "{batch}"),
    "export": ("batch", "export", "{batch}", "-o", "-", "--format", "jsonl"),
    "unknown": ("batch", "status", "no-such-batch"),
}
CODES = {"unknown": 1, "status": 3}


class Situation(NamedTuple):
    """Where a command is run."""

    environ: Mapping[str, str] = {}
    piped_to: str = ""
    """A program that reads the output, and may stop early."""


SITUATIONS = {
    "NO_COLOR": Situation({"NO_COLOR": "1", "FORCE_COLOR": ""}),
    "dumb terminal": Situation({"TERM": "dumb"}),
    "40 columns": Situation({"COLUMNS": "40"}),
    "another time zone": Situation({"TZ": "Pacific/Kiritimati"}),
    "C locale": Situation({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": "ascii"}),
    "home that can't be written": Situation({"HOME": "/proc/1", "XDG_DATA_HOME": "/proc/1"}),
    "closed pipe": Situation(piped_to="head -c 1"),
}

pytestmark = pytest.mark.timeout(300)


async def typed(folder: Folder, words: tuple[str, ...], where: Situation) -> tuple[int, str]:
    """Run a command under a shell; returns its own exit code and all that it wrote."""
    command = " ".join([SCORELINE, *words])
    piped = f" | {where.piped_to}" if where.piped_to else ""
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        f"{command}{piped}; exit ${{PIPESTATUS[0]}}",
        cwd=folder.root,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environment(**folder.environ, **where.environ),
    )
    written, _ = await process.communicate()
    return process.returncode or 0, written.decode(errors="replace")


async def test_commands_work_in_every_surrounding(
    tmp_path: Path, redis_url: str, postgres_url: str
) -> None:
    """No traceback, no escape code, the same exit code; a reader that stops early is no error of ours."""
    folder = Folder(tmp_path, redis_url, postgres_url)
    folder.cases(3)
    asked = ("--dataset", "cases.jsonl", "--target", "python:app:raises", "--evaluator", "exact")
    ran = await folder.run("batch", "run", *asked, "--workers", "1", "--retries", "0", "--json")
    assert ran.code == 3, ran.stderr
    async with asyncio.TaskGroup() as group:
        for about, where in SITUATIONS.items():
            for name in COMMANDS:
                group.create_task(check(folder, ran.document["batch_id"], (about, where), name))


async def check(folder: Folder, batch_id: str, situation: tuple[str, Situation], name: str) -> None:
    """Run one command in one situation."""
    about, where = situation
    line = tuple(word.format(batch=batch_id) for word in COMMANDS[name])
    code, written = await typed(folder, line, where)
    allowed = {CODES.get(name, 0)} | ({1} if where.piped_to else set())
    assert code in allowed, (about, name, code, written)
    assert "Traceback" not in written, (about, name, written)
    assert "\x1b" not in written, (about, name, written)
