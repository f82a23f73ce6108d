"""Real servers, real workers, and what breaks them: shared by as many runs as the faults allow.

Workers and writers reach the servers through links that can be broken; the tests look at them directly.
"""

import json
import os
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from psycopg import AsyncConnection, OperationalError
from redis.asyncio import Redis
from redis.exceptions import RedisError

from eventlog.keys import DEFAULT_SHARDS
from projections.database.readiness import prepare
from scoreline.local.embedded import embedded_servers
from scoreline.local.embedded.layout import Layout
from scoreline.servers.addresses import Servers
from tests.chaos.link import Link, faithfully, link
from tests.chaos.worker import Orders, work
from tests.chaos.worker_group import WorkerGroup
from tests.processes import children
from tests.waiting import until

TIMEOUTS = "socket_timeout=1&socket_connect_timeout=1"
"""Long enough for any answer, and short enough for a test to outwait."""


@dataclass(slots=True)
class Links:
    """The ways that can be broken."""

    worker_to_redis: Link
    worker_to_postgres: Link
    writer_to_redis: Link


@dataclass(slots=True)
class World:
    """Servers, links and workers."""

    layout: Layout
    servers: Servers
    links: Links
    workers: WorkerGroup[Orders]
    batches: set[str] = field(default_factory=set)

    @property
    def writers_redis(self) -> str:
        """The address that writers use."""
        return f"unix://{self.links.writer_to_redis.path}?{TIMEOUTS}"

    @asynccontextmanager
    async def postgres(self, url: str | None = None) -> AsyncIterator[AsyncConnection[Any]]:
        """Look into Postgres, past every link."""
        url = url or self.servers.postgres_url
        async with await AsyncConnection.connect(url, autocommit=True, connect_timeout=3) as conn:
            yield conn

    async def redis(self, *command: str | int) -> Any:
        """Send one command to Redis, past every link."""
        async with Redis.from_url(self.servers.redis_url) as client:
            return await client.execute_command(*command)  # type: ignore[no-untyped-call]  # redis ships it so

    async def kill_redis(self) -> None:
        """kill -9 Redis; its guardian starts it again from the append-only file."""
        pid = self._redis_pid
        os.kill(pid, signal.SIGKILL)
        await until(lambda: self._is_another_redis(pid), 60)

    async def lose_redis(self, rng: Random | None = None) -> None:
        """kill -9 Redis, and tear off the end of what it had written, or lose it whole; start it again."""
        pid = self._redis_pid
        await until(self.layout.status.exists, 60)  # nothing else is being brought up
        with self._guardian_held():
            os.kill(pid, signal.SIGKILL)
            await until(lambda: _is_gone(pid))
            written = self.layout.home / "valkey" / "appendonlydir"
            newest = max(written.glob("*.incr.aof"), key=lambda path: int(path.name.split(".")[-3]))
            if rng is None:
                for path in written.iterdir():
                    path.unlink()
            else:
                os.truncate(newest, max(0, newest.stat().st_size - rng.randint(1, 60_000)))
        await until(lambda: self._is_another_redis(pid), 60)

    async def kill_postgres(self) -> None:
        """kill -9 every process of Postgres; its guardian starts it again."""
        postmaster = self._postmaster
        for pid in (postmaster, *children(postmaster)):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        await until(lambda: self._is_another_postgres(postmaster), 60)

    async def stop_postgres(self) -> None:
        """Stop Postgres as `pg_ctl -m immediate stop` does; its guardian starts it again."""
        postmaster = self._postmaster
        os.kill(postmaster, signal.SIGQUIT)
        await until(lambda: self._is_another_postgres(postmaster), 60)

    async def restore(self) -> None:
        """End every fault that a failed run may have left, and all workers."""
        for way in (self.links.worker_to_redis, self.links.worker_to_postgres, self.links.writer_to_redis):
            way.manner, way.open_to_new = faithfully, True
        await self.workers.dismiss()
        await self.redis("CLIENT", "UNPAUSE")
        await self.redis("CONFIG", "SET", "maxmemory", 0)

    @property
    def _redis_pid(self) -> int:
        return int((self.layout.home / "valkey.pid").read_text())

    @property
    def _postmaster(self) -> int:
        return int((self.layout.home / "postgres" / "postmaster.pid").read_text().split()[0])

    async def _is_another_redis(self, killed: int) -> bool:
        try:
            return self._redis_pid != killed and bool(await self.redis("PING"))
        except (OSError, ValueError, RedisError):
            return False

    async def _is_another_postgres(self, killed: int) -> bool:
        try:
            async with self.postgres():
                return self._postmaster != killed
        except (OSError, ValueError, IndexError, OperationalError):
            return False

    @contextmanager
    def _guardian_held(self) -> Iterator[None]:
        """Keep the guardian from starting anything, as a power cut does."""
        guardian = int(json.loads(self.layout.status.read_text())["guardian"])
        os.kill(guardian, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(guardian, signal.SIGCONT)


@asynccontextmanager
async def world(root: Path) -> AsyncIterator[World]:
    """Have servers under `root`, with workers to be mustered, for as long as the block lasts."""
    async with AsyncExitStack() as stack:
        servers = stack.enter_context(embedded_servers(root))
        await prepare(servers.postgres_url, shards=DEFAULT_SHARDS)
        layout = Layout.under(root)
        # Of their own, and short: a socket's path has a hundred bytes, and its server sweeps its directory.
        ways = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="ways-")))
        links = await _links(stack, ways, layout.sockets())
        orders = Orders(
            f"unix://{links.worker_to_redis.path}?{TIMEOUTS}",
            f"postgresql://postgres@/scoreline?host={ways}&port=5432",
            "chaos",
            root / "call_log",
        )
        workers = WorkerGroup(orders, work, root / "workers.log")
        stack.push_async_callback(workers.dismiss)
        yield World(layout, servers, links, workers)


async def _links(stack: AsyncExitStack, ways: Path, sockets: Path) -> Links:
    redis, postgres = sockets / "valkey.sock", ".s.PGSQL.5432"
    return Links(
        await stack.enter_async_context(link(ways / "worker.sock", redis)),
        await stack.enter_async_context(link(ways / postgres, sockets / postgres)),
        await stack.enter_async_context(link(ways / "writer.sock", redis)),
    )


def _is_gone(pid: int) -> bool:
    """Whether a process has ended, be it that its parent has not taken note yet."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True
