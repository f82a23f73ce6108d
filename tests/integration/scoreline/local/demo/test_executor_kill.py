"""The demo kills an executor that has claimed tasks, and no other."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from eventlog import payloads as p
from eventlog.log import Append
from eventlog.redis_streams import RedisEventLog
from scoreline.local.demo.executor_kill import ExecutorKiller
from scoreline.local.processes import Child, ProcessManager, process_manager
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from taskqueue.redis_streams import RedisTaskQueue
from taskqueue.tasks import Delivery, Task
from tests.builders import history, records
from tests.waiting import until

ME = "b-0-aaaa"
NOW = timedelta(0)
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


@dataclass(slots=True)
class Scene:
    """A batch of three, an executor that is a sleeping process, and the killer under test."""

    log: RedisEventLog
    executor: Child
    manager: ProcessManager
    killer: ExecutorKiller
    lines: list[str]
    taken: list[Delivery] = field(default_factory=list)

    def begin(self) -> "asyncio.Task[None]":
        """Start the killer."""
        return asyncio.create_task(self.killer.run(self.manager))

    async def looks(self) -> int:
        """Return the number of scripts run so far; each poll of the queue runs one."""
        stats = await self.log.redis.info("commandstats")
        return int(stats["cmdstat_evalsha"]["calls"])

    async def take(self, *, finish: bool = False) -> None:
        """Let the executor fetch one task, and optionally complete it."""
        queue = RedisTaskQueue(self.log.redis)
        taken = await queue.consume(ME, {"b": 1}, block=NOW)
        if finish:
            await queue.ack(ME, taken)
        else:
            self.taken += taken

    async def finish_all(self) -> None:
        """Let the executor complete everything at once."""
        queue = RedisTaskQueue(self.log.redis)
        rest = await queue.consume(ME, {"b": 3}, block=NOW)
        await queue.ack(ME, [*self.taken, *rest])

    async def claim(self, evaluation_id: str) -> None:
        """Let the executor claim an attempt."""
        claim = p.Provisioning(ME, "nonce-1")
        events = history("queued provisioning", evaluation_id=evaluation_id, provisioning=claim)
        epoch = await self.log.epoch(evaluation_id)
        await self.log.append([Append(evaluation_id, records(events), epoch)])

    def is_frozen(self) -> bool:
        """Whether the process is stopped."""
        pid = self.executor.process.pid if self.executor.process else 0
        return Path(f"/proc/{pid}/stat").read_text().split()[2] == "T"


@asynccontextmanager
async def scene(redis_url: str) -> AsyncIterator[Scene]:
    """Set up the scene."""
    log, lines = RedisEventLog.from_url(redis_url), list[str]()
    async with process_manager(os.environ, on_restart=lambda _child: None) as manager:
        child = manager.keep("executor 0", SLEEPER)
        await until(lambda: child.process)
        assert child.process
        await RedisExecutorRegistry(log.redis).heartbeat(
            ExecutorInstance(ME, "b-0", "here", child.process.pid)
        )
        await RedisTaskQueue(log.redis).enqueue_batch("b", [Task(f"e-{n}", 1) for n in (1, 2, 3)])
        killer = ExecutorKiller(redis_url, log.shards, "b", 3, lines.append)
        yield Scene(log, child, manager, killer, lines)
    await log.aclose()


async def test_an_executor_is_killed_with_claimed_tasks(redis_url: str) -> None:
    """A task without a claim does not count: the executor runs on until it has claimed an attempt."""
    async with scene(redis_url) as here:
        await here.take(finish=True)
        await here.take()
        striking = here.begin()
        await until(here.is_frozen)
        await until(lambda: not here.is_frozen())
        assert here.lines == []
        await here.claim("e-2")
        await striking
        await until(lambda: here.executor.exits == [-9])
        assert here.killer.killed
        assert here.killer.killed.claimed == ("e-2",)
        assert [line.split()[1] for line in here.lines] == ["-STOP", "-9"]


async def test_no_executor_is_killed_before_a_third_has_ended(redis_url: str) -> None:
    """An executor with claimed tasks is killed only once a third of the batch has ended."""
    async with scene(redis_url) as here:
        await here.take()
        await here.claim("e-1")
        before = await here.looks()
        striking = here.begin()

        async def has_looked() -> bool:
            return await here.looks() > before + 5

        await until(has_looked)
        assert here.lines == []
        await here.take(finish=True)
        await striking
        assert here.killer.killed
        assert (here.killer.killed.done, here.killer.killed.claimed) == (1, ("e-1",))


async def test_no_executor_is_killed_once_the_batch_is_over(redis_url: str) -> None:
    """A batch that ends before an executor has claimed a task ends without a kill."""
    async with scene(redis_url) as here:
        await here.take()
        striking, before = here.begin(), await here.looks()

        async def has_looked() -> bool:
            return await here.looks() > before + 2

        await until(has_looked)
        await here.finish_all()
        await striking
        assert here.killer.killed is None
        assert here.executor.exits == []
