"""Batches as people run them: the installed command, in a folder of its own, and the processes under it.

folder = Folder(tmp_path, redis_url, postgres_url)      given servers with every table, there at once
folder = Folder(tmp_path)                               embedded ones of its own, which may be killed
ran = await folder.run("batch", "run", ...)             a command that comes to its end
async with folder.started("batch", "run", ...) as run:  one that we do something to meanwhile
"""

import asyncio
import fcntl
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import OperationalError

from tests.integration.worker import SCORELINE, environment
from tests.processes import children, command_line, descendants, is_running
from tests.waiting import until

TIMEOUT = 90
HEAVY = pytest.mark.skipif(os.environ.get("CI") != "true", reason="takes half a minute: only with CI=true")
_EMBEDDED = "postgresql://postgres@/scoreline?host={}&port=5432"

APP = """
import os, pathlib, sys, time

HERE = pathlib.Path(__file__).parent

def echo(prompt):
    with open(HERE / "calls", "a") as calls:
        calls.write(prompt + "\\n")
    return prompt

def gated(prompt):
    echo(prompt)
    while not (HERE / "open").exists():
        time.sleep(0.01)
    time.sleep(0.2)
    return prompt

def raises(prompt):
    raise ValueError(f"no answer to {prompt}")

def hangs(prompt):
    time.sleep(600)

def leaves(prompt):
    sys.exit(3)

def dies(prompt):
    os._exit(7)

def prints(prompt):
    line = "x" * 1023 + "\\n"
    for _ in range(16 * 1024):
        print(line, end="")
    return prompt
"""
"""Targets, good and bad."""


class Ran:
    """A command that has ended."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code, self.stdout, self.stderr = code, stdout, stderr

    @property
    def document(self) -> dict[str, Any]:
        """The one JSON object that it printed."""
        [line] = self.stdout.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


class Folder:
    """A folder with an `app.py`, and servers."""

    def __init__(self, root: Path, redis_url: str = "", postgres_url: str = "") -> None:
        self.root = root / "w"
        self.root.mkdir()
        self.write("app.py", APP)
        self.data = root / "d"
        self.prefix: tuple[str, ...] = ()
        self.environ = {"EVAL_DATA_DIR": str(self.data)}
        self.postgres_url = postgres_url or _EMBEDDED.format(self.data / "servers")
        if redis_url and postgres_url:
            self.environ |= {"EVAL_REDIS_URL": redis_url, "EVAL_POSTGRES_URL": postgres_url}

    def write(self, name: str, text: str) -> None:
        """Write a file."""
        (self.root / name).write_text(text)

    def cases(self, count: int) -> None:
        """Write `cases.jsonl`: numbers, each of which is expected back."""
        self.write("cases.jsonl", "".join(f'{{"input": "{n}", "expected": "{n}"}}\n' for n in range(count)))

    @property
    def calls(self) -> list[str]:
        """What targets were asked, as they came."""
        calls = self.root / "calls"
        return calls.read_text().split() if calls.exists() else []

    async def run(self, *arguments: str, interpreter: str | None = None, **environ: str) -> Ran:
        """Run a command to its end, perhaps with more in its environment."""
        async with self.started(*arguments, interpreter=interpreter, **environ) as started:
            return await started.end()

    @asynccontextmanager
    async def started(
        self, *arguments: str, interpreter: str | None = None, **environ: str
    ) -> "AsyncIterator[Started]":
        """Run a command that does not outlive the block."""
        process = await asyncio.create_subprocess_exec(
            *self.prefix,
            *([interpreter, "-P", "-m", "scoreline"] if interpreter else [SCORELINE]),
            *arguments,
            cwd=self.root,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment(**{**self.environ, **environ}),
        )
        started = Started(process)
        try:
            yield started
        finally:
            if process.returncode is None:
                process.kill()
            await started.end()

    def ask(self, statement: str) -> list[tuple[Any, ...]]:
        """Ask the database, if it answers just now."""
        try:
            with psycopg.connect(self.postgres_url, connect_timeout=2) as conn:
                return conn.execute(statement.encode()).fetchall()
        except (OperationalError, psycopg.errors.UndefinedTable):
            return []

    def change(self, statement: str) -> None:
        """Change the database."""
        with psycopg.connect(self.postgres_url) as conn:
            conn.execute(statement.encode())

    def ended(self) -> int:
        """Count the evaluations that have ended, as far as the database has them."""
        found = self.ask("SELECT count(*) FROM evaluations WHERE ended_at IS NOT NULL")
        return int(found[0][0]) if found else 0

    def batch_id(self) -> str:
        """Name the only batch."""
        [(batch_id,)] = self.ask("SELECT batch_id FROM batches")
        return str(batch_id)

    async def at_rest(self) -> None:
        """Wait until the embedded servers have stopped, as they do by themselves."""
        await until(lambda: not self._has_guardian(), 60)

    def _has_guardian(self) -> bool:
        """Whether the process that owns the embedded servers lives: it holds a lock till all is stopped."""
        with (self.data / "servers" / "guardian.lock").open("a") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return True
        return False


@dataclass(slots=True)
class Started:
    """A command on its way, and the processes under it."""

    process: asyncio.subprocess.Process
    ran: Ran | None = None

    async def end(self) -> Ran:
        """Wait for its end."""
        if self.ran is None:
            stdout, stderr = await asyncio.wait_for(self.process.communicate(), TIMEOUT)
            assert self.process.returncode is not None
            self.ran = Ran(self.process.returncode, stdout.decode(), stderr.decode())
        return self.ran

    def interrupt(self) -> None:
        """Press Ctrl-C."""
        self.process.send_signal(signal.SIGINT)

    def family(self) -> list[int]:
        """All processes that it has started, and that those have."""
        return list(descendants(self.process.pid))

    def kill_child(self, *words: str) -> int:
        """kill -9 the first process whose command line has these words; returns how many have them."""
        found = [pid for pid in _services(self.process.pid) if _is(pid, words)]
        if found:
            os.kill(found[0], signal.SIGKILL)
        return len(found)


def gone(pids: Sequence[int]) -> bool:
    """Whether none of these processes runs any more."""
    return not any(map(is_running, pids))


def _is(pid: int, words: Sequence[str]) -> bool:
    return set(words) <= set(command_line(pid))


def _services(pid: int) -> Iterator[int]:
    """List the services of a run: its children, and those of its fork server; not what these have started.

    Between fork and exec a program that a service starts has the service's command line.
    """
    for child in children(pid):
        yield from children(child) if _is(child, ["scoreline.cli.fork_server"]) else [child]
