"""A real storage worker as a process of its own, for the benches."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from psycopg import AsyncConnection

from scoreline.local.storage_workers import WorkerPlan, worker_argv, worker_environ
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings

Connection = AsyncConnection[Any]


@asynccontextmanager
async def storage_workers(servers: Servers, count: int, *, batch_size: int) -> AsyncIterator[None]:
    """Run storage workers; the block starts when they are ready, before they read."""
    plan = WorkerPlan("bench", batch_size=batch_size)
    environ = worker_environ(Settings(), servers)
    processes = [await _start(worker_argv(plan, number), environ) for number in range(count)]
    try:
        await asyncio.gather(*(_until_ready(process) for process in processes))
        yield
    finally:
        for process in processes:
            process.terminate()
            await process.wait()


async def _start(argv: list[str], environ: dict[str, str]) -> asyncio.subprocess.Process:
    pipe = asyncio.subprocess.PIPE
    return await asyncio.create_subprocess_exec(*argv, stdin=pipe, stderr=pipe, env=environ)


async def _until_ready(process: asyncio.subprocess.Process) -> None:
    if process.stderr is None:
        raise RuntimeError("no stderr")
    while line := await process.stderr.readline():
        if b'"ready"' in line:
            return
    raise RuntimeError("the storage worker ended before it was ready")


async def until_completed(conn: Connection, evaluations: int) -> None:
    """Wait until the counters show so many completed evaluations."""
    counted = -1
    while counted < evaluations:
        await asyncio.sleep(0.01)
        cursor = await conn.execute("SELECT coalesce(sum(completed), 0)::bigint FROM batch_progress")
        counted = (await cursor.fetchone() or [0])[0]
