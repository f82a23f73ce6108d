"""An outcome is given only once the namespace of its run is empty."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import closing

import pytest

from executor.contract import Transient
from executor.sandbox.bubblewrap_status import BubblewrapStatus
from executor.sandbox.job import SandboxJob
from executor.sandbox.pid_namespace import PidNamespace
from executor.sandbox.sandbox import Sandbox
from tests.integration.sandboxed import needs_sandbox

pytestmark = needs_sandbox


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
