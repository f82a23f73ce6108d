"""A small workload on servers of its own: four writers, three hundred evaluations, real processes."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from psycopg import AsyncConnection, OperationalError
from redis.asyncio import Redis

from eventlog.event_queue import EventQueue
from eventlog.keys import DEFAULT_SHARDS
from eventlog.redis_streams import RedisEventLog
from projections.database import prepare
from scoreline.demo.writers import Plan, live, plan
from scoreline.embedded import Servers, embedded_servers
from scoreline.processes import ProcessManager, process_manager
from scoreline.settings import Settings
from scoreline.workers import WorkerPlan, worker_argv, worker_environ
from tests.chaos.checker import check, nothing_in_hand
from tests.waiting import until

BATCH = "chaos"
WRITERS = 4
AT_ONCE = 2
"""Evaluations of one writer at a time: so few that the run lasts long enough to be disturbed."""
PATIENCE = 60


@dataclass(slots=True)
class Run:
    """A run in progress, and the ways to disturb it."""

    root: Path
    servers: Servers
    manager: ProcessManager
    plans: list[Plan]
    depths: list[int] = field(default_factory=list)
    writing: asyncio.Task[None] | None = None

    async def ended(self) -> int:
        """How many evaluations have ended, as far as Postgres can say just now."""
        try:
            async with await AsyncConnection.connect(self.servers.postgres_url, connect_timeout=3) as conn:
                asked = await conn.execute("SELECT count(*) FROM evaluations WHERE ended_at IS NOT NULL")
                [counted] = await asked.fetchone() or [0]
                return int(counted)
        except OperationalError:
            return 0

    async def is_over(self) -> bool:
        """Whether all have ended."""
        return await self.ended() == len(self.plans)

    async def progress(self, share: float) -> None:
        """Wait until a share of all evaluations has ended."""
        await until(lambda: self._passed(share), PATIENCE)

    async def _passed(self, share: float) -> bool:
        if self.writing and self.writing.done():
            self.writing.result()  # a writer that broke is the reason, not the time it took
        return await self.ended() >= share * len(self.plans)

    async def redis(self, *command: str | int) -> None:
        """Send one command to Redis."""
        async with Redis.from_url(self.servers.redis_url) as client:
            await client.execute_command(*command)  # type: ignore[no-untyped-call]  # redis ships it so

    async def refusals(self) -> int:
        """How often Redis has refused a command for want of memory."""
        async with Redis.from_url(self.servers.redis_url) as client:
            errors = await client.info("errorstats")
            return int(errors.get("errorstat_OOM", {}).get("count", 0))

    async def kill_worker(self, number: int = 0) -> None:
        """kill -9 one storage worker; its manager starts it again."""
        child = self.manager.children[number]
        process = await until(lambda: child.process if child.process and not _ended(child) else None)
        restarts = child.restarts
        os.kill(process.pid, signal.SIGKILL)
        await until(lambda: child.restarts > restarts)

    def kill_redis(self) -> None:
        """kill -9 Redis; its guardian starts it again from the append-only file."""
        os.kill(_pid(self.root / "servers" / "valkey.pid"), signal.SIGKILL)

    def kill_postgres(self) -> None:
        """kill -9 every process of Postgres; its guardian starts it again."""
        postmaster = _pid(self.root / "servers" / "postgres" / "postmaster.pid")
        children = Path(f"/proc/{postmaster}/task/{postmaster}/children").read_text()
        for pid in (postmaster, *map(int, children.split())):
            os.kill(pid, signal.SIGKILL)

    async def write(self) -> None:
        """Live through all evaluations, and keep the writers alive until Postgres has every one."""
        async with AsyncExitStack() as stack:
            lives = []
            for number in range(WRITERS):
                log = RedisEventLog.from_url(self.servers.redis_url, shards=DEFAULT_SHARDS)
                stack.push_async_callback(log.aclose)
                queue = await stack.enter_async_context(EventQueue(log, source=f"writer-{number}"))
                turn = asyncio.Semaphore(AT_ONCE)
                lives += [self._live(one, queue, turn) for one in self.plans[number::WRITERS]]
            await asyncio.gather(*lives)
            await until(self.is_over, PATIENCE)

    async def _live(self, one: Plan, queue: EventQueue, turn: asyncio.Semaphore) -> None:
        async with turn:
            await live(one, BATCH, queue, self.depths.append)


def _ended(child: object) -> bool:
    process = getattr(child, "process", None)
    return process is None or process.returncode is not None


def _pid(path: Path) -> int:
    return int(path.read_text().split()[0])


@asynccontextmanager
async def disturbed(root: Path, *, workers: int = 1, evaluations: int = 300) -> AsyncIterator[Run]:
    """A run to disturb while it goes on; after the block it must end by itself, and pass the checker."""
    rng = Random(evaluations + workers)
    with embedded_servers(root) as servers:
        await prepare(servers.postgres_url, shards=DEFAULT_SHARDS)
        environ = worker_environ(Settings(gap_timeout=2.0, gap_warning=1.0), servers)
        with (root / "workers.log").open("ab") as log:
            async with process_manager(environ, log_to=log) as manager:
                for number in range(workers):
                    manager.keep(f"worker {number}", worker_argv(WorkerPlan("chaos"), number))
                plans = [plan(BATCH, number, rng) for number in range(evaluations)]
                run = Run(root, servers, manager, plans)
                await until(lambda: nothing_in_hand(servers), PATIENCE)  # the workers are ready
                writing = run.writing = asyncio.create_task(run.write())
                try:
                    await run.progress(0.15)
                    assert not writing.done()
                    yield run
                    await writing
                    await check(servers, {one.evaluation_id for one in plans})
                finally:
                    writing.cancel()
                    await asyncio.gather(writing, return_exceptions=True)
