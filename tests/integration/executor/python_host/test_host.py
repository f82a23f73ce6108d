"""The host of a function: cancelled, blocked, lost or killed, it leaves no process."""

import asyncio
import signal
import sys
import textwrap
from functools import partial

import pytest

from tests.integration.executor.python_functions import (
    is_gone,
    question,
    target,
)
from tests.waiting import until


def are_gone(pids: list[str]) -> bool:
    return all(is_gone(int(pid)) for pid in pids)


async def test_a_call_that_is_cancelled_is_ended_with_all_it_started(workdir):
    """A hanging function is killed at once, with its children, and the next call gets a new process."""
    where = workdir / "pids"
    async with target(workdir, "hangs", slots=1) as made:
        for _ in range(2):
            call = asyncio.create_task(made.call(question(where=str(where))))
            pids = await until(lambda: where.exists() and where.read_text().split())
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            await until(partial(are_gone, pids))
            where.unlink()


async def test_a_cancellable_coroutine_is_cancelled_alone(workdir):
    """Other calls in the same process continue."""
    where = workdir / "pid"
    async with target(workdir, "deaf") as made:
        call = asyncio.create_task(made.call(question("kind", where=str(where))))
        pid = int(await until(lambda: where.exists() and where.read_text()))
        call.cancel()
        await until(lambda: not made.pool.hosts[0].calls)
        assert (await made.call(question("quick", where=""))).answer.output == "x"
        assert not is_gone(pid)


async def test_a_coroutine_that_blocks_is_killed_with_its_process(workdir):
    """Other calls of that process are made again, and the next one gets a new process."""
    where = workdir / "pid"
    async with target(workdir, "deaf") as made:
        innocent = asyncio.create_task(made.call(question("slow", where=str(where))))
        await until(lambda: made.pool.hosts and made.pool.hosts[0].calls)
        guilty = asyncio.create_task(made.call(question("deaf", where=str(where))))
        pid = int(await until(lambda: where.exists() and where.read_text()))
        guilty.cancel()
        assert (await innocent).answer.output == "y"
        await until(lambda: is_gone(pid))
        assert (await made.call(question("quick", where=""))).answer.output == "x"


async def test_a_call_that_a_lost_process_never_started_is_made_again(workdir):
    """A process that answers and can't read the next request ends; the next call gets another one."""
    async with target(workdir, "stops_reading", slots=1) as made:
        answers = [(await made.call(question(str(n)))).answer.output for n in range(5)]
    assert answers == ["0", "1", "2", "3", "4"]


async def test_a_process_ends_with_its_executor_however_that_ended(workdir):
    """Killed without warning, an executor leaves no function behind, not even one in a tight loop."""
    where = workdir / "pids"
    script = f"""
        import asyncio
        from eventlog import payloads as p
        from executor.contract import TargetRequest, ExecutionEnvironment
        from executor.targets.python import PYTHON
        here = ExecutionEnvironment(workdir={str(workdir)!r})
        made = PYTHON.make({{"function": "functions:hangs"}}, here)
        asyncio.run(made.call(TargetRequest("b.1", "x", p.Case(id="c"), {{"where": {str(where)!r}}})))
    """
    executor = await asyncio.create_subprocess_exec(sys.executable, "-c", textwrap.dedent(script))
    pids = await until(lambda: where.exists() and where.read_text().split())
    executor.send_signal(signal.SIGKILL)
    await executor.wait()
    await until(partial(are_gone, pids))
