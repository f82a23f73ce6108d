"""Measures how long work stalls at default settings: an executor killed, one that hangs, Redis killed.

    python -m bench.recovery --json                 all three, one JSON object each
    python -m bench.recovery --only killed          one of: killed, hung, restarted

Limit: none; the figures are absolute seconds. Real processes run on the embedded servers. Where Redis is
killed, the target is an HTTP server in this process; where an executor is killed it is a Python function,
because a lane starts with eight calls of an endpoint that has not responded yet. Times are from the fault,
or the claims of an executor that hangs, to the claim of the next attempt, for each evaluation that the
executor had claimed.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import psycopg
from redis.asyncio import Redis
from redis.exceptions import RedisError

from coordinator.settings import CoordinatorSettings
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.event_queue import Claimed, ClaimRequest, EventQueue
from eventlog.redis_streams import RedisEventLog
from scoreline.local.embedded import embedded_servers
from scoreline.servers.addresses import Servers
from taskqueue.executor_registry import HEARTBEAT_INTERVAL, ExecutorInstance
from taskqueue.redis_executor_registry import RedisExecutorRegistry

EVALUATIONS = 50
LONGER = 1_500
"""Evaluations of the batch during which Redis is killed."""
TIMEOUT = 5.0
"""Seconds that the target may take, where an executor hangs."""
PHASE_TIMEOUT = 240.0
CLAIMS = """
SELECT evaluation_id, attempt, occurred_at FROM events
WHERE type = 'provisioning' ORDER BY evaluation_id, attempt
"""
ENDS = "SELECT occurred_at FROM events WHERE type = 'completed' ORDER BY occurred_at"
REOPENED = """
SELECT coalesce(event #>> '{data,reason}', ''), count(*) FROM events
WHERE type = 'queued' AND attempt > 1 GROUP BY 1
"""
SLEEPER = """
import time

def sleeps(prompt):
    time.sleep(600)
"""
"""A target that does not return before its executor is killed."""
SUBMIT = ("batch", "run", "--distributed", "--detach", "--json", "--dataset", "cases.jsonl")


@dataclass(slots=True)
class RecoveryBench:
    """A directory, servers, and an HTTP target with a delay."""

    folder: Path
    servers: Servers
    stack: AsyncExitStack
    delay: float
    url: str = ""

    async def start(self, *argv: str) -> asyncio.subprocess.Process:
        """Start a command that is killed when the bench is left."""
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "scoreline",
            *argv,
            cwd=self.folder,
            env={
                **{name: value for name, value in os.environ.items() if not name.startswith("EVAL_")},
                "EVAL_DATA_DIR": str(self.folder / "data"),
                "EVAL_REDIS_URL": self.servers.redis_url,
                "EVAL_POSTGRES_URL": self.servers.postgres_url,
            },
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=self.stack.enter_context((self.folder / "log").open("ab")),
        )
        self.stack.push_async_callback(_kill, process)
        return process

    async def submit(self, count: int, *options: str) -> None:
        """Submit a batch of so many evaluations."""
        rows = (json.dumps({"input": str(number), "expected": ""}) + "\n" for number in range(count))
        (self.folder / "cases.jsonl").write_text("".join(rows))
        target = () if "--target" in options else ("--target", self.url)
        process = await self.start(*SUBMIT, *target, *options)
        if await process.wait():
            raise RuntimeError("the batch was not accepted")

    def rows(self, statement: str) -> list[tuple[Any, ...]]:
        """Query the database."""
        with psycopg.connect(self.servers.postgres_url) as conn:
            return conn.execute(statement.encode()).fetchall()

    def claimed(self, attempt: int) -> dict[str, datetime]:
        """Return when each evaluation's attempt of this number was claimed, by the log in Postgres."""
        return {key: at for key, number, at in self.rows(CLAIMS) if number == attempt}

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request, after the delay."""
        await reader.readuntil(b"\r\n\r\n")
        await asyncio.sleep(self.delay)
        head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\nConnection: close"
        writer.write(f"{head}\r\n\r\n{{}}".encode())
        writer.close()


@asynccontextmanager
async def bench(delay: float) -> AsyncIterator[RecoveryBench]:
    """Set a bench up, with a coordinator and a storage worker."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(ignore_cleanup_errors=True)))
        servers = stack.enter_context(embedded_servers(folder / "data"))
        made = RecoveryBench(folder, servers, stack, delay)
        server = await asyncio.start_server(made.answer, "127.0.0.1", 0)
        stack.callback(server.close)
        made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/"
        migrating = await made.start("db", "migrate")
        await migrating.wait()
        await made.start("coordinator", "start")
        await made.start("storage-worker", "start")
        yield made


async def _kill(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


async def _until(condition: Any) -> None:  # noqa: ANN401 - sync, returns anything
    async with asyncio.timeout(PHASE_TIMEOUT):
        while not condition():  # noqa: ASYNC110 - other processes
            await asyncio.sleep(0.2)


async def killed() -> dict[str, Any]:
    """Kill an executor with 50 attempts; another one is idle."""
    async with bench(delay=0) as made:
        (made.folder / "sleeper.py").write_text(SLEEPER)
        first = await made.start("worker", "start", "--concurrency", str(EVALUATIONS))
        await made.submit(EVALUATIONS, "--target", "python:sleeper:sleeps", "--timeout", "600")
        await _until(lambda: len(made.claimed(1)) == EVALUATIONS)
        await made.start("worker", "start", "--concurrency", str(EVALUATIONS))
        await asyncio.sleep(2 * HEARTBEAT_INTERVAL.total_seconds())
        at = utc_now()
        first.kill()
        await _until(lambda: len(made.claimed(2)) == EVALUATIONS)
        return _spread("killed", [(found - at).total_seconds() for found in made.claimed(2).values()])


async def hung() -> dict[str, Any]:
    """Claim 50 attempts, send heartbeats, and never go on."""
    async with bench(delay=0) as made:
        redis = Redis.from_url(made.servers.redis_url)
        made.stack.push_async_callback(redis.aclose)
        log = RedisEventLog(redis)
        queue = await made.stack.enter_async_context(EventQueue(log, source="hung"))
        beating = asyncio.create_task(_beat(RedisExecutorRegistry(redis)))
        made.stack.callback(beating.cancel)
        await made.submit(EVALUATIONS, "--timeout", str(TIMEOUT))
        rows = made.rows("SELECT evaluation_id, batch_id FROM evaluations")
        claim = p.Provisioning(executor="hung-1", nonce="0", runtime="process")
        waiting = [ClaimRequest(key, batch_id, 1, claim) for key, batch_id in rows]
        while waiting:
            answers = await queue.claim_many(waiting)
            pairs = zip(waiting, answers, strict=True)
            waiting = [wish for wish, answer in pairs if not isinstance(answer, Claimed)]
            await asyncio.sleep(0.1)  # until the coordinator has published them
        at = utc_now()
        await made.start("worker", "start", "--concurrency", str(EVALUATIONS))
        await _until(lambda: len(made.claimed(2)) == EVALUATIONS)
        found = [(found - at).total_seconds() for found in made.claimed(2).values()]
        return {**_spread("hung", found), "attempt_deadline_s": TIMEOUT}


async def _beat(executor_registry: RedisExecutorRegistry) -> None:
    while True:
        await executor_registry.heartbeat(
            ExecutorInstance("hung-1", "hung", slots=EVALUATIONS, busy=EVALUATIONS)
        )
        await asyncio.sleep(HEARTBEAT_INTERVAL.total_seconds())


async def restarted() -> dict[str, Any]:
    """Kill Redis under a running batch; its guardian starts it again with its append-only file."""
    async with bench(delay=0.2) as made:
        await made.start("worker", "start", "--concurrency", "8")
        await made.start("worker", "start", "--concurrency", "8")
        # A coordinator that has just begun waits for the whole grace: it has not seen who was there.
        await asyncio.sleep(1.5 * CoordinatorSettings().grace.total_seconds())
        await made.submit(LONGER)
        await _until(lambda: len(made.rows(ENDS)) > LONGER / 5)
        pid = int((made.folder / "data" / "servers" / "valkey.pid").read_text())
        os.kill(pid, signal.SIGKILL)
        at = utc_now()
        await _until_it_answers(made.servers.redis_url)
        down = (utc_now() - at).total_seconds()
        await _until(lambda: len(made.rows(ENDS)) == LONGER)
        ends = [found for (found,) in made.rows(ENDS)]
        gaps = [(after - before).total_seconds() for before, after in pairwise(ends)]
        return {
            "bench": "restarted",
            "evaluations": LONGER,
            "down_s": round(down, 2),
            "stall_s": round(max(gaps) - down, 2),
            "reopened": dict(made.rows(REOPENED)),
        }


async def _until_it_answers(url: str) -> None:
    async with Redis.from_url(url) as redis:
        while True:
            try:
                await redis.ping()
            except (RedisError, OSError):
                await asyncio.sleep(0.01)
            else:
                return


def _spread(name: str, seconds: Sequence[float]) -> dict[str, Any]:
    ordered = sorted(seconds)
    last = ordered[min(len(ordered) - 1, round(0.99 * len(ordered)))]
    return {
        "bench": name,
        "evaluations": len(ordered),
        "p50_s": round(ordered[len(ordered) // 2], 1),
        "p99_s": round(last, 1),
    }


BENCHES = {"killed": killed, "hung": hung, "restarted": restarted}


def main() -> None:
    """Run the selected scenarios, and print the results."""
    parser = argparse.ArgumentParser(prog="python -m bench.recovery", description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--only", choices=BENCHES, help="one of them")
    asked = parser.parse_args()
    for name in [asked.only] if asked.only else BENCHES:
        found = asyncio.run(BENCHES[name]())
        words = "  ".join(f"{key} {value}" for key, value in found.items())
        print(json.dumps(found) if asked.json else words, flush=True)


if __name__ == "__main__":
    main()
