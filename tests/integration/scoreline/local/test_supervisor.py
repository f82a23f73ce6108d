"""BatchSupervisor: what it does when one of its processes dies."""

import asyncio
import socket
import sys
from contextlib import AsyncExitStack
from io import StringIO
from pathlib import Path

import pytest
from redis.asyncio import Redis
from rich.console import Console

from scoreline.local.fleet import Fleet
from scoreline.local.interruption import Interruption
from scoreline.local.processes import Child, ProcessManager
from scoreline.local.supervisor import BatchSupervisor, RunRequest, poll_interval
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.redis_executor_registry import RedisExecutorRegistry
from tests.waiting import until

SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


def driving(redis_url: str, root: Path) -> BatchSupervisor:
    """A supervisor of a fleet that is not started."""
    servers = Servers(redis_url, "postgresql://unused.invalid")
    console = Console(file=StringIO(), width=200)
    return BatchSupervisor(
        RunRequest("b", Fleet("b", 1)), servers, Settings(data_dir=root), console, Interruption()
    )


async def started(manager: ProcessManager) -> Child:
    """A process that stands for an executor."""
    child = manager.keep("executor 0", SLEEPER)
    await until(lambda: child.process)
    return child


async def test_a_dead_executor_is_deregistered_at_once(redis_url: str, tmp_path: Path) -> None:
    """The executor is deregistered before its heartbeat expires, and the kill is reported."""
    driver = driving(redis_url, tmp_path)
    async with AsyncExitStack() as stack:
        redis = await stack.enter_async_context(Redis.from_url(redis_url))
        executor_registry = RedisExecutorRegistry(redis)
        manager = await stack.enter_async_context(driver.processes(stack))
        child = await started(manager)
        assert child.process
        await executor_registry.heartbeat(
            ExecutorInstance("b-0-aaaa", "b-0", socket.gethostname(), child.process.pid)
        )
        await executor_registry.heartbeat(
            ExecutorInstance("b-1-bbbb", "b-1", socket.gethostname(), child.process.pid + 1)
        )
        child.process.kill()

        async def left() -> bool:
            return [one.instance_id for one in await executor_registry.live()] == ["b-1-bbbb"]

        await until(left, 5)
    assert isinstance(driver.console.file, StringIO)
    assert "executor 0 ended (killed by signal 9): started again" in driver.console.file.getvalue()


async def test_a_dead_executor_is_restarted_though_redis_is_away(tmp_path: Path) -> None:
    """A failed deregistration does not stop the run: the heartbeat expires by itself."""
    driver = driving(f"unix://{tmp_path}/missing.sock", tmp_path)
    async with AsyncExitStack() as stack:
        manager = await stack.enter_async_context(driver.processes(stack))
        child = await started(manager)
        assert child.process
        before = child.process.pid
        child.process.kill()
        await until(lambda: child.process and child.process.pid != before, 5)


async def test_background_tasks_end_with_the_fleet(redis_url: str, tmp_path: Path) -> None:
    """No background task of a batch outlives it."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def beside(_manager: ProcessManager) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    driver = driving(redis_url, tmp_path)
    driver.wanted = RunRequest("b", Fleet("b", 0, storage_workers=0), beside=beside)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("scoreline.local.fleet.start", lambda _fleet, _manager: None)
        async with AsyncExitStack() as stack:
            await driver.start(driver.wanted.fleet or Fleet("b"), stack)
            await until(begun.is_set)
            # Not cancelled while it connects: redis-py would leave the socket to the garbage collector.
            await until(lambda: len(driver._tasks) == 1)
            assert not ended.is_set()
    assert ended.is_set()


def test_a_batch_is_polled_often_at_first_and_once_a_second_in_the_end() -> None:
    """A short batch ends a fifth of its time later at most; a long one costs few reads."""
    assert [poll_interval(elapsed) for elapsed in (0.0, 0.5, 2.5, 5.0, 3_600.0)] == [
        0.1,
        0.1,
        0.5,
        1.0,
        1.0,
    ]
