"""The processes that run functions: how many there are."""

import asyncio

import pytest

from executor.contract import Transient
from tests.integration.executor.python_functions import (
    is_gone,
    question,
    target,
)
from tests.waiting import until


async def test_a_plain_function_gets_as_many_processes_as_there_are_slots(workdir):
    """Calls of a plain function run side by side, one a process, and processes serve again."""
    async with target(workdir, "pid", slots=2) as made:
        replies = await asyncio.gather(*(made.call(question()) for _ in range(6)))
        assert len({reply.answer.output for reply in replies}) == len(made.pool.hosts) == 2


async def test_a_coroutine_function_shares_one_process(workdir):
    """Calls of a coroutine function wait together."""
    async with target(workdir, "apid", slots=50) as made:
        replies = await asyncio.gather(*(made.call(question()) for _ in range(50)))
        assert len({reply.answer.output for reply in replies}) == len(made.pool.hosts) == 1


async def test_closing_leaves_no_process(workdir):
    """A running call is cancelled, and its process has ended when closing is done."""
    where = workdir / "pids"
    async with target(workdir, "hangs") as made:
        call = asyncio.create_task(made.call(question(where=str(where))))
        pids = await until(lambda: where.exists() and where.read_text().split())
    assert is_gone(int(pids[0]))
    await until(lambda: is_gone(int(pids[1])))
    with pytest.raises(Transient):
        await call
