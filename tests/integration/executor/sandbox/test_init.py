"""No program controls the first process of its sandbox, outlives its run, or forges its exit code."""

import asyncio
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from executor.contract import Transient
from executor.sandbox.assembly import assembled
from executor.sandbox.bubblewrap_options import PrivilegeMode, isolation_options
from executor.sandbox.bubblewrap_status import BubblewrapStatus
from executor.sandbox.init import INIT
from executor.sandbox.job import SandboxJob
from executor.sandbox.orphans import kill_orphans
from executor.sandbox.pid_namespace import PidNamespace
from executor.sandbox.probe import BUBBLEWRAP, TOOL_ENVIRON, ProbeResult, failure_of
from executor.sandbox.sandbox import Sandbox
from tests.integration.sandboxed import PREFIXES, PRIVILEGE_MODES, needs_sandbox
from tests.integration.takeover import TAKEOVER
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


def running(token: str) -> list[int]:
    """The processes with this word in their command lines, but those that have ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
async def test_a_program_can_not_take_over_the_first_process(
    privilege_mode: PrivilegeMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No way into it works, the exit code is the program's own, and no process is left."""
    monkeypatch.setattr("executor.sandbox.sandbox.probe", lambda _: ProbeResult(privilege_mode))
    token = f"takeover-{uuid4().hex}"
    job = SandboxJob(
        ("python3", "-I", "-S", "program.py", token), 20, texts={"program.py": TAKEOVER.encode()}
    )
    outcome = await Sandbox().run(job)
    assert (outcome.stdout, outcome.exit_code, outcome.killed_by) == (b"", 7, None), outcome
    assert not running(token)


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


@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
def test_no_program_starts_without_the_executors_confirmation(privilege_mode: PrivilegeMode) -> None:
    """The first process announces itself, and ends where the executor has died instead of answering."""
    with (
        assembled(SandboxJob(("echo", "started"), 5), privilege_mode, BUBBLEWRAP) as assembly,
        subprocess.Popen(
            assembly.argv,
            env=TOOL_ENVIRON,
            pass_fds=assembly.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        ) as process,
    ):
        assert process.communicate()[0] == b"."


async def test_an_outcome_is_given_only_of_a_namespace_that_is_empty(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where a process survives, the run has failed, whatever its exit code is."""

    async def never(_namespace: PidNamespace, _seconds: float) -> bool:
        return False

    monkeypatch.setattr(PidNamespace, "emptied", never)
    with pytest.raises(Transient, match="survive"):
        await Sandbox().run(SandboxJob(("true",), 5))


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that goes on until it is killed."""
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


@pytest.fixture
def account(sleeper: subprocess.Popen[bytes]) -> Iterator[BubblewrapStatus]:
    """Bubblewrap's report that this is a sandbox's first process."""
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.write(writing, f'{{"child-pid": {sleeper.pid}}}\n'.encode())
    yield BubblewrapStatus(reading)
    os.close(reading)
    os.close(writing)


async def test_a_namespace_that_is_not_empty_is_reported(
    sleeper: subprocess.Popen[bytes], account: BubblewrapStatus
) -> None:
    """A pidfd is readable only when the process has ended; a process of another parent is never held."""
    assert not PidNamespace(account).hold(os.getppid())
    with closing(PidNamespace(account)) as namespace:
        assert namespace.hold(os.getpid())
        assert not await namespace.emptied(0.01)
        namespace.kill(os.getpid())
        assert await namespace.emptied(5)
        namespace.kill(os.getpid())  # again: nothing happens
    assert sleeper.wait() == -signal.SIGKILL


@pytest.mark.skipif(PrivilegeMode.USER_NAMESPACE not in PRIVILEGE_MODES, reason="no user namespaces here")
def test_the_self_test_refuses_a_first_process_that_can_be_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A readable executable makes one; so does the setting fs.suid_dumpable=1, which the refusal names."""

    def readable(*arguments: Any) -> list[str]:
        return ["0555" if option == "0111" else option for option in isolation_options(*arguments)]

    monkeypatch.setattr("executor.sandbox.assembly.isolation_options", readable)
    assert "suid_dumpable" in failure_of(BUBBLEWRAP, PrivilegeMode.USER_NAMESPACE)
