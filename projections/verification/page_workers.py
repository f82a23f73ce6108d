"""Parallel processing of a batch's pages, in processes that share one exported snapshot.

Folding is pure Python, so one process uses one core. The parent exports its snapshot and distributes ids;
each worker process reads and folds its pages in transactions on that snapshot. The parent processes pages
too, from the start: a worker process needs half a second to begin.
"""

import asyncio
import os
import signal
import threading
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context, parent_process
from typing import NamedTuple, TypeVar

from psycopg import AsyncConnection, IsolationLevel, sql
from psycopg.conninfo import make_conninfo

from projections.database.connection import Connection
from projections.verification.pages import (
    BatchExtent,
    Since,
    changed_ids,
    page_ids,
    rare_garbage_collection,
)

Result = TypeVar("Result")


class PageJob(NamedTuple):
    """A page of a batch to read and fold."""

    batch: BatchExtent
    shards: int
    ids: list[str]


WORTH_A_PROCESS = 5_000
"""Evaluations that justify the start of another process."""
MOST_PROCESSES = 8
PAGES_AHEAD = 64
"""Results that may wait for an earlier page, so that results come in order."""
IN_UTC = "SET LOCAL TIME ZONE 'UTC'"


def processes_for(evaluations: int) -> int:
    """Return the number of processes to use on this machine."""
    return max(1, min(MOST_PROCESSES, os.cpu_count() or 1, evaluations // WORTH_A_PROCESS))


Work = Callable[[Connection, PageJob], Awaitable[Result]]
"""Processes one page; a module-level function, so that it can be pickled."""


async def over_pages(  # noqa: PLR0913 - what to process, and how
    conn: Connection,
    batch: BatchExtent,
    work: Work[Result],
    *,
    shards: int,
    processes: int,
    since: Since | None = None,
) -> AsyncGenerator[tuple[PageJob, Result], None]:
    """Process every page, or what changed since; the connection is in a REPEATABLE READ transaction."""
    await conn.execute(IN_UTC)
    pages = page_ids(conn, batch) if since is None else changed_ids(conn, batch, since)
    jobs = (PageJob(batch, shards, ids) async for ids in pages)
    with rare_garbage_collection():
        if processes <= 1:
            async for job in jobs:
                yield job, await work(conn, job)
            return
        [snapshot] = await (await conn.execute("SELECT pg_export_snapshot()")).fetchone() or [""]
        here = make_conninfo(conn.info.dsn, password=conn.info.password)
        with ProcessPoolExecutor(processes - 1, get_context("spawn"), _begin, (here, snapshot)) as executor:
            async for done in _share(executor, conn, jobs, work, most=2 * (processes - 1)):
                yield done


async def _share(
    executor: ProcessPoolExecutor,
    conn: Connection,
    jobs: AsyncIterator[PageJob],
    work: Work[Result],
    *,
    most: int,
) -> AsyncGenerator[tuple[PageJob, Result], None]:
    """Keep the processes busy with `most` pages, and process the others here; results come in order."""
    loop = asyncio.get_running_loop()
    waiting: deque[tuple[PageJob, asyncio.Future[Result]]] = deque()
    try:
        async for job in jobs:
            if sum(not result.done() for _, result in waiting) < most:
                with _uninterrupted():  # a process may be started here
                    waiting.append((job, loop.run_in_executor(executor, _do, work, job)))
            else:
                waiting.append((job, _done(await work(conn, job))))
            while waiting and (waiting[0][1].done() or len(waiting) > PAGES_AHEAD):
                first, result = waiting.popleft()
                yield first, await result
        while waiting:
            first, result = waiting.popleft()
            yield first, await result
    finally:
        for _, result in waiting:  # their results are no longer needed
            result.cancel()


def _done(result: Result) -> "asyncio.Future[Result]":
    future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()
    future.set_result(result)
    return future


@dataclass(slots=True)
class _Worker:
    """A worker process with its own connection."""

    loop: asyncio.AbstractEventLoop
    conn: Connection
    snapshot: str

    async def do(self, work: Work[Result], job: PageJob) -> Result:
        async with self.conn.transaction():
            await self.conn.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(self.snapshot))
            await self.conn.execute(IN_UTC)
            with rare_garbage_collection():
                return await work(self.conn, job)


_workers: list[_Worker] = []
"""The worker of this process, if it was started as one."""


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Start processes in the block with SIGINT ignored.

    Ctrl-C reaches every process of a terminal; the parent handles it and ends the workers.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _end_with_parent() -> None:
    """Exit with the parent: an orphaned worker would wait for jobs for ever."""
    if parent := parent_process():
        parent.join()
        os._exit(1)


def _begin(here: str, snapshot: str) -> None:
    threading.Thread(target=_end_with_parent, daemon=True).start()
    loop = asyncio.new_event_loop()
    conn = loop.run_until_complete(AsyncConnection.connect(here))
    loop.run_until_complete(conn.set_isolation_level(IsolationLevel.REPEATABLE_READ))
    _workers.append(_Worker(loop, conn, snapshot))


def _do(work: Work[Result], job: PageJob) -> Result:
    [worker] = _workers
    return worker.loop.run_until_complete(worker.do(work, job))
