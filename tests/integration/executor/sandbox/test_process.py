"""A run that is cancelled, or whose executor is killed, leaves no process."""

import asyncio
import sys
from pathlib import Path
from uuid import uuid4

from executor.sandbox.job import SandboxJob, SandboxOutcome
from executor.sandbox.sandbox import Sandbox
from tests.integration.sandboxed import needs_sandbox
from tests.waiting import until

pytestmark = needs_sandbox

PROJECT = Path(__file__).parents[4]
EXECUTOR = """
import asyncio
from executor.sandbox.job import SandboxJob
from executor.sandbox.sandbox import Sandbox
asyncio.run(Sandbox().run(SandboxJob({command}, 1000)))
"""


def _processes(token: str) -> set[int]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if token.encode() in path.read_bytes():
                found.add(int(path.parent.name))
        except OSError:
            continue
    return found


async def test_a_run_that_is_cancelled_at_any_moment_leaves_nothing() -> None:
    """This holds during the start, during the setup of the sandbox, and during the run."""
    token = f"cancelled-{uuid4().hex}"
    job = SandboxJob(("sh", "-c", f"sleep 1000; echo {token}"), seconds=1000)
    for turns in range(12):
        await _cancelled(asyncio.create_task(Sandbox().run(job)), turns=turns)
    for wanted in (1, 2, 3):
        task = asyncio.create_task(Sandbox().run(job))
        await _running(token, wanted)
        await _cancelled(task)
    await until(lambda: not _processes(token))


async def test_a_killed_executor_ends_its_programs() -> None:
    """This holds for SIGKILL, which runs no cleanup."""
    token = f"orphan-{uuid4().hex}"
    program = EXECUTOR.format(command=("sh", "-c", f"sleep 1000; echo {token}"))
    executor = await asyncio.create_subprocess_exec(sys.executable, "-c", program, cwd=PROJECT)
    await _running(token, 4)  # the executor, bubblewrap twice, and the shell
    executor.kill()
    await executor.wait()
    await until(lambda: not _processes(token))


async def _running(token: str, wanted: int) -> None:
    await until(lambda: len(_processes(token)) >= wanted)


async def _cancelled(task: asyncio.Task[SandboxOutcome], *, turns: int = 0) -> None:
    """Cancel a run after so many turns of the loop; it must end soon."""
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait({task}, timeout=5)
    assert task.cancelled()
