"""Work through the pages of a batch, here or in several processes that all see one state of the database.

Folding is pure Python, so one process uses one core. The parent exports its snapshot and hands out ids;
each of the others reads and folds its pages in transactions that see that very snapshot.
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
from projections.verification.pages import BatchExtent, collecting_seldom, page_ids

Result = TypeVar("Result")


class PageJob(NamedTuple):
    """Some evaluations of a batch, to be read and folded."""

    batch: BatchExtent
    shards: int
    ids: list[str]


WORTH_A_PROCESS = 5_000
"""Evaluations below which another process costs more time than it saves."""
MOST_PROCESSES = 8


def processes_for(evaluations: int) -> int:
    """Say how many processes are worth their start, on this machine."""
    return max(1, min(MOST_PROCESSES, os.cpu_count() or 1, evaluations // WORTH_A_PROCESS))


Work = Callable[[Connection, PageJob], Awaitable[Result]]
"""What is done with a job; a function of a module, so that another process can find it."""


async def over_pages(
    conn: Connection, batch: BatchExtent, work: Work[Result], *, shards: int, processes: int
) -> AsyncGenerator[tuple[PageJob, Result], None]:
    """Do some work on every page; the connection is in a transaction that keeps its snapshot."""
    jobs = (PageJob(batch, shards, ids) async for ids in page_ids(conn, batch))
    if processes <= 1:
        with collecting_seldom():
            async for job in jobs:
                yield job, await work(conn, job)
        return
    [snapshot] = await (await conn.execute("SELECT pg_export_snapshot()")).fetchone() or [""]
    here = make_conninfo(conn.info.dsn, password=conn.info.password)
    with ProcessPoolExecutor(processes, get_context("spawn"), _begin, (here, snapshot)) as executor:
        async for done in _handed_out(executor, jobs, work, most=2 * processes):
            yield done


async def _handed_out(
    executor: ProcessPoolExecutor, jobs: AsyncIterator[PageJob], work: Work[Result], *, most: int
) -> AsyncGenerator[tuple[PageJob, Result], None]:
    """Keep every process busy, and no more than a few pages on the way: results come in order."""
    loop = asyncio.get_running_loop()
    waiting: deque[tuple[PageJob, asyncio.Future[Result]]] = deque()
    try:
        async for job in jobs:
            with _uninterrupted():  # a process may be started here
                waiting.append((job, loop.run_in_executor(executor, _do, work, job)))
            if len(waiting) >= most:
                first, result = waiting.popleft()
                yield first, await result
        while waiting:
            first, result = waiting.popleft()
            yield first, await result
    finally:
        for _, result in waiting:  # nobody waits for these any more
            result.cancel()


@dataclass(slots=True)
class _Worker:
    """One of the processes, with a connection of its own."""

    loop: asyncio.AbstractEventLoop
    conn: Connection
    snapshot: str

    async def do(self, work: Work[Result], job: PageJob) -> Result:
        async with self.conn.transaction():
            await self.conn.execute(sql.SQL("SET TRANSACTION SNAPSHOT {}").format(self.snapshot))
            with collecting_seldom():
                return await work(self.conn, job)


_workers: list[_Worker] = []
"""The one worker of a process that was started to be one."""


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Have processes that are started in a block ignore Ctrl-C, from their first moment on.

    It reaches every process of a terminal; the parent heeds it, and ends the others.
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
    """Wait for the parent's death, however it comes: a child would wait for work for ever."""
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
