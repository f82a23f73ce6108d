"""Storage workers for tests, in this process or as the command that users type, and queries.

async with site(redis_url, postgres_url) as here:      a migrated database, and both clients
    async with worker(here): ...                       a worker in this process
    async with worker_process(here) as started: ...    `scoreline storage-worker start`
"""

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from psycopg import AsyncConnection, sql
from redis.asyncio import Redis

from eventlog.codec import encode, fields_of
from eventlog.events import Event
from eventlog.keys import DEFAULT_SHARDS, GROUP, events_key, shard_of, wake_key
from eventlog.log import Append
from eventlog.redis_streams import RedisEventLog
from storage_worker.app import build_app
from storage_worker.settings import StorageSettings
from tests.builders import records
from tests.processes import children
from tests.waiting import until

SCORELINE = str(Path(sys.executable).with_name("scoreline"))
"""The installed command."""
WAKE_STREAMS = [wake_key(shard) for shard in range(DEFAULT_SHARDS)]
_TIMEOUT = 20


@dataclass(frozen=True, slots=True)
class Site:
    """A Redis and a database for workers to work on."""

    redis_url: str
    postgres_url: str
    redis: Redis
    conn: AsyncConnection[Any]

    async def append(self, *histories: Iterable[Event]) -> None:
        """Append histories as Scoreline's writers do, one call each."""
        log = RedisEventLog(self.redis)
        for history in histories:
            events = list(history)
            key = events[0].evaluation_id
            [reply] = await log.append([Append(key, records(events), await log.epoch(key))])
            assert all(answer.acknowledged for answer in reply.results), reply

    async def add_plainly(self, events: Iterable[Event], *, wake: bool = True) -> None:
        """Write as any client may: two plain XADDs an event."""
        for event in events:
            await self.add_fields(event.evaluation_id, fields_of(event, encode(event)), wake=wake)

    async def add_fields(self, evaluation_id: str, fields: Mapping[Any, Any], *, wake: bool = True) -> None:
        """Write any entry at all to an evaluation's stream."""
        shard = shard_of(evaluation_id, DEFAULT_SHARDS)
        await self.redis.xadd(events_key(shard, evaluation_id), dict(fields))
        if wake:
            await self.redis.xadd(wake_key(shard), {"id": evaluation_id})

    async def rows(self, statement: str, *values: object) -> list[tuple[Any, ...]]:
        """Run a query."""
        return await (await self.conn.execute(statement.encode(), values)).fetchall()

    async def state(self, evaluation_id: str) -> str | None:
        """Return the evaluation's state, or None without a row."""
        found = await self.rows("SELECT state FROM evaluations WHERE evaluation_id = %s", evaluation_id)
        return found[0][0] if found else None

    async def counted(self, state: str) -> int:
        """Return how many evaluations are in a state."""
        return int((await self.rows("SELECT count(*) FROM evaluations WHERE state = %s", state))[0][0])

    async def verdicts(self, evaluation_id: str) -> dict[int, str]:
        """Return the disposition of each event, by its sequence."""
        query = "SELECT sequence, verdict FROM events WHERE evaluation_id = %s ORDER BY sequence"
        return dict(await self.rows(query, evaluation_id))

    async def reasons(self, evaluation_id: str | None = None) -> list[str]:
        """Return the reasons of the quarantine, of one evaluation or of none."""
        query = "SELECT reason FROM quarantine WHERE evaluation_id IS NOT DISTINCT FROM %s ORDER BY reason"
        return [reason for (reason,) in await self.rows(query, evaluation_id)]

    async def has_waiting_commit(self) -> bool:
        """Return whether a transaction waits to write evaluations (see `commits_blocked`)."""
        waiting = "SELECT FROM pg_locks WHERE relation = 'evaluations'::regclass AND NOT granted"
        return bool(await self.rows(waiting))

    async def pending(self) -> int:
        """Return the number of wake-ups that were delivered and not acknowledged."""
        return sum([(await self.redis.xpending(stream, GROUP))["pending"] for stream in WAKE_STREAMS])


@asynccontextmanager
async def site(redis_url: str, postgres_url: str) -> AsyncIterator[Site]:
    """Yield both clients of a migrated database."""
    async with (
        Redis.from_url(redis_url) as redis,
        await AsyncConnection.connect(postgres_url, autocommit=True) as conn,
    ):
        yield Site(redis_url, postgres_url, redis, conn)


@asynccontextmanager
async def commits_blocked(here: Site) -> AsyncIterator[None]:
    """Hold a lock that lets storage workers read, and makes each of their transactions wait."""
    async with await AsyncConnection.connect(here.postgres_url) as conn:
        await conn.execute("LOCK TABLE evaluations IN SHARE MODE")
        yield
        await conn.rollback()


@asynccontextmanager
async def worker(here: Site, **changes: Any) -> AsyncIterator[None]:
    """Run a worker in this process, from ready to stopped."""
    hasty = StorageSettings(
        here.redis_url,
        here.postgres_url,
        "worker",
        gap_timeout=timedelta(milliseconds=300),
        gap_warning=timedelta(milliseconds=100),
    )
    app = build_app(replace(hasty, **changes))
    # Not app.run(), which would take over the signals of the tests.
    async with app.lifespan_context():
        await app.start()
        try:
            yield
        finally:
            await app.stop()


@dataclass(frozen=True, slots=True)
class Started:
    """A worker that runs as a process of its own."""

    process: subprocess.Popen[bytes]
    port: int

    async def health(self, number: int = 0) -> tuple[int, dict[str, Any]] | None:
        """Return a worker's health document, or None."""
        return await ask(self.port + number, "/health")

    def children(self) -> list[int]:
        """Return the processes it has started."""
        return children(self.process.pid)

    async def stop(self) -> int:
        """Send SIGTERM, and return its exit code."""
        self.process.send_signal(signal.SIGTERM)
        await until(lambda: self.process.poll() is not None, _TIMEOUT)
        return self.process.returncode


@asynccontextmanager
async def worker_process(here: Site, *options: str, **environ: str) -> AsyncIterator[Started]:
    """Run `scoreline storage-worker start`, from healthy to stopped."""
    urls = {"EVAL_REDIS_URL": here.redis_url, "EVAL_POSTGRES_URL": here.postgres_url}
    port = free_port()
    command = [SCORELINE, "storage-worker", "start", "--health-port", str(port), *options]
    with ended_in_any_case(command, {**urls, **environ}) as process:
        started = Started(process, port)
        await until(started.health, _TIMEOUT)
        yield started
        if process.poll() is None:
            await started.stop()


@contextmanager
def ended_in_any_case(command: list[str], environ: Mapping[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """Start a process that does not outlive the block."""
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment(**environ),
    ) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def scoreline(*arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    command = [SCORELINE, *arguments]
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        env=environment(**environ),
        timeout=60,
        check=False,
    )


def environment(**ours: str) -> dict[str, str]:
    """Return this environment with the given settings of Scoreline only, and the command on the path."""
    others = {name: value for name, value in os.environ.items() if not name.startswith("EVAL_")}
    path = f"{Path(SCORELINE).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    return others | {"PATH": path} | ours


def alive(pid: int) -> bool:
    """Whether a process exists."""
    return Path(f"/proc/{pid}").exists()


async def admit(admin: AsyncConnection[Any], database: str, *, allowed: bool) -> None:
    """Refuse new connections to a database, or allow them again."""
    statement = sql.SQL("ALTER DATABASE {} WITH ALLOW_CONNECTIONS {}")
    await admin.execute(statement.format(sql.Identifier(database), sql.Literal(allowed)))
    if not allowed:
        ended = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s"
        await admin.execute(ended, [database])


def free_port() -> int:
    """Return a port on which no server listens, nor on the one above it."""
    while True:
        with socket.socket() as first, socket.socket() as second:
            first.bind(("127.0.0.1", 0))
            port = int(first.getsockname()[1])
            try:
                second.bind(("127.0.0.1", port + 1))
            except OSError:
                continue
            return port


async def ask(port: int, path: str) -> tuple[int, dict[str, Any]] | None:
    """GET a JSON document from loopback; None where no server listens."""
    try:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return None
    writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    if not answer:
        return None
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)
