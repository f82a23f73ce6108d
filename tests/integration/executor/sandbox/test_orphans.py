"""Sandboxes whose executor has died are ended."""

import asyncio
import os
import select
import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest

from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.init import INIT
from executor.sandbox.orphans import kill_orphans
from executor.sandbox.probe import BUBBLEWRAP
from tests.integration.executor.sandbox.first_process import running
from tests.integration.sandboxed import PREFIXES, PRIVILEGE_MODES, needs_sandbox
from tests.waiting import until

pytestmark = needs_sandbox


PROJECT = Path(__file__).parents[4]


EXECUTOR = """
import asyncio, sys
from executor.sandbox.assembly import assembled
from executor.sandbox.job import SandboxJob
from executor.sandbox.sandbox import Sandbox
print(Sandbox().check(), flush=True)
asyncio.run(Sandbox().run(SandboxJob(("sleep", sys.argv[1], "1000"), 1000)))
"""


@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
async def test_an_executor_killed_at_any_moment_leaves_no_process(privilege_mode: PrivilegeMode) -> None:
    """This holds from before its first fork until its program runs; the next executor ends leftovers."""
    token = f"orphan-{uuid4().hex}"
    executors = [await _executor(privilege_mode, token) for _ in range(4)]
    await asyncio.gather(*(_kill(each, number / 100) for number, each in enumerate(executors)))
    await until(lambda: not any(map(_is_built, running(token))))
    kill_orphans(BUBBLEWRAP)
    await until(lambda: not running(token))


async def _executor(privilege_mode: PrivilegeMode, token: str) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *PREFIXES[privilege_mode],
        sys.executable,
        "-c",
        EXECUTOR,
        token,
        cwd=PROJECT,
        stdout=subprocess.PIPE,
    )


async def _kill(executor: asyncio.subprocess.Process, moment: float) -> None:
    assert executor.stdout
    assert await executor.stdout.readline() == b"\n"
    await asyncio.sleep(moment)
    executor.kill()
    await executor.wait()


def _is_built(pid: int) -> bool:
    """Whether this is the program inside, not bubblewrap."""
    try:
        return not Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"bwrap")
    except OSError:
        return False


def test_a_sandbox_that_was_never_built_is_ended_by_the_next() -> None:
    """It is bubblewrap's inner process, whose outer one was killed before it could start it."""
    blocked, block = os.pipe()
    command = [
        "bwrap",
        "--unshare-user",
        "--unshare-pid",
        "--info-fd",
        "2",
        "--userns-block-fd",
        str(blocked),
    ]
    with subprocess.Popen([*command, INIT], pass_fds=[blocked], stderr=subprocess.DEVNULL) as outer:
        children = Path(f"/proc/{outer.pid}/task/{outer.pid}/children")
        while not (found := children.read_text().split()):
            assert outer.poll() is None
        pidfd = os.pidfd_open(int(found[0]))
        kill_orphans(BUBBLEWRAP)
        assert not select.select([pidfd], [], [], 0)[0]  # it has its outer process
        outer.kill()
        outer.wait()
        kill_orphans(BUBBLEWRAP)
        assert select.select([pidfd], [], [], 10)[0]
    for descriptor in (blocked, block, pidfd):
        os.close(descriptor)
