"""`scoreline demo` as a newcomer runs it, on servers of its own; and while we break everything under it."""

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psycopg
from psycopg import OperationalError
from redis import Redis

from tests.integration.worker import SCORELINE, environment, scoreline
from tests.waiting import until

POSTGRES = "postgresql://postgres@/scoreline?host={}&port=5432"


class Demo:
    """A demo in progress, and the processes under it."""

    def __init__(self, root: Path, *options: str) -> None:
        self.home = root / "servers"
        self.process = subprocess.Popen(
            [SCORELINE, "demo", "--json", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment(EVAL_DATA_DIR=str(root)),
        )

    def ended(self) -> int:
        """How many evaluations have ended, as far as Postgres can say just now."""
        try:
            with psycopg.connect(POSTGRES.format(self.home), connect_timeout=2) as conn:
                counted = conn.execute("SELECT count(*) FROM evaluations WHERE ended_at IS NOT NULL")
                return int((counted.fetchone() or [0])[0])
        except (OperationalError, psycopg.errors.UndefinedTable):
            return 0

    def kill_worker(self) -> None:
        """kill -9 the storage worker, which is the demo's only child."""
        pid = self.process.pid
        [worker] = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        os.kill(int(worker), signal.SIGKILL)

    def kill_redis(self) -> None:
        """kill -9 Redis."""
        os.kill(int((self.home / "valkey.pid").read_text()), signal.SIGKILL)

    def kill_postgres(self) -> None:
        """kill -9 Postgres."""
        os.kill(int((self.home / "postgres" / "postmaster.pid").read_text().split()[0]), signal.SIGKILL)

    def flush_redis(self) -> None:
        """Make Redis forget everything."""
        with Redis(unix_socket_path=str(self.home / "valkey.sock")) as redis:
            redis.flushall()

    def result(self) -> dict[str, Any]:
        """What it printed at its end, which was a good one."""
        printed, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0, printed
        [line] = printed.splitlines()
        found: dict[str, Any] = json.loads(line)
        return found


@asynccontextmanager
async def mid_demo(root: Path, *options: str, ended: int) -> AsyncIterator[Demo]:
    """A demo of which so many evaluations have ended, and more have not."""
    demo = Demo(root, *options)
    try:
        await until(lambda: demo.process.poll() is not None or demo.ended() >= ended, 30)
        assert demo.process.poll() is None
        yield demo
    finally:
        if demo.process.poll() is None:
            demo.process.kill()
        demo.process.communicate()


async def at_rest(root: Path) -> None:
    """Wait until the servers have stopped, as they do by themselves."""
    pid_file = root / "servers" / "postgres" / "postmaster.pid"
    await until(lambda: not pid_file.exists(), 20)


async def test_demo_puts_everything_right(tmp_path: Path) -> None:
    """Out of events that came late, doubled, out of order or never, every evaluation gets its end."""
    ended = scoreline("demo", "--evaluations", "200", "--json", "--seed", "7", EVAL_DATA_DIR=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    told = json.loads(ended.stdout)
    assert (told["stuck"], told["unfinished"], told["total"], told["pending"]) == (0, [], 200, 0)
    assert told["reordered"] > 0
    assert told["network"]["duplicated"] > 0
    assert told["network"]["lost"] >= told["bridged"]
    assert told["completed"] + told["failed"] == 200
    assert told["differing"] == 0
    await at_rest(tmp_path)


async def test_demo_tells_people_that_nothing_is_stuck(tmp_path: Path) -> None:
    """Without --json the report goes to stdout, and its last line is the one that matters."""
    ended = scoreline("demo", "--evaluations", "200", EVAL_DATA_DIR=str(tmp_path))
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines()[-1] == "0 stuck"
    assert "the tables equal the log: all" in ended.stdout
    await at_rest(tmp_path)


async def test_demo_survives_the_death_of_everything_under_it(tmp_path: Path) -> None:
    """Storage worker, Redis and Postgres killed in mid-demo: it takes longer, and nothing is stuck."""
    async with mid_demo(tmp_path, "--evaluations", "2000", ended=100) as demo:
        demo.kill_worker()
        demo.kill_redis()
        demo.kill_postgres()
        told = demo.result()
    assert (told["stuck"], told["total"]) == (0, 2000)
    assert told["restarts"] >= 1
    assert told["differing"] == 0
    await at_rest(tmp_path)


async def test_demo_survives_the_loss_of_redis(tmp_path: Path) -> None:
    """Redis forgets everything in mid-demo: the writers put back what only they still know."""
    async with mid_demo(tmp_path, "--evaluations", "2000", ended=100) as demo:
        demo.flush_redis()
        told = demo.result()
    assert (told["stuck"], told["total"]) == (0, 2000)
    await at_rest(tmp_path)
