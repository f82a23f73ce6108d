"""The local process manager: the order in which it stops its children, and how it kills them."""

import sys
from pathlib import Path

import pytest

from scoreline.local.process_log import last_error
from scoreline.local.processes import START_ATTEMPTS, Child, process_manager
from scoreline.local.readiness import UNAVAILABLE
from tests.waiting import until

STOPS = """
import pathlib, signal, sys, time
log, name, seconds = pathlib.Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
def stop(*_):
    time.sleep(seconds)
    with log.open("a") as lines:
        lines.write(f"{name} stopped\\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, stop)
with log.open("a") as lines:
    lines.write(f"{name} ready\\n")
while True:
    signal.pause()
"""


async def test_services_are_stopped_after_the_processes_that_use_them(tmp_path: Path) -> None:
    """The last events of an executor still reach a storage worker."""
    log = tmp_path / "log"
    log.touch()
    async with process_manager({}) as manager:
        for name, seconds, serves in (("storage", "0", True), ("executor", "0.2", False)):
            manager.keep(name, [sys.executable, "-c", STOPS, str(log), name, seconds], serves=serves)
        await until(lambda: log.read_text().count("ready") == 2, 60)
    assert log.read_text().split("\n")[2:4] == ["executor stopped", "storage stopped"]


async def test_killed_children_get_no_grace_period(tmp_path: Path) -> None:
    """A second interrupt kills all children at once."""
    log = tmp_path / "log"
    log.touch()
    async with process_manager({}) as manager:
        child = manager.keep("executor", [sys.executable, "-c", STOPS, str(log), "executor", "0"])
        await until(lambda: "ready" in log.read_text(), 60)
        manager.kill()
        await until(lambda: child.exits, 60)
        assert (child.exits, "stopped" in log.read_text()) == ([-9], False)


FAILS = "import sys; sys.exit(int(sys.argv[1]))"


async def test_a_child_that_cannot_start_is_given_up_after_three_tries(tmp_path: Path) -> None:
    """It is reported once, with the path of its log; its exit codes are kept."""
    reported: list[Child] = []
    with (tmp_path / "log").open("ab") as log:
        async with process_manager({}, log_to=log, on_failure=reported.append) as manager:
            child = manager.keep("executor", [sys.executable, "-c", "raise ImportError('broken')"])
            await until(lambda: reported, 60)
    assert (reported, child.exits) == ([child], [1, 1, 1])
    assert last_error(tmp_path / "log", since=child.log_offset) == "ImportError: broken"


@pytest.mark.parametrize("code", [0, UNAVAILABLE])
async def test_a_child_that_exits_with_0_or_finds_no_server_is_always_restarted(code: int) -> None:
    """A storage worker exits with 0 after a loss of Redis, and any child may start during an outage."""
    reported: list[Child] = []
    async with process_manager({}, on_failure=reported.append) as manager:
        child = manager.keep("storage", [sys.executable, "-c", FAILS, str(code)])
        await until(lambda: len(child.exits) > START_ATTEMPTS, 60)
    assert reported == []


async def test_a_child_that_is_killed_has_not_failed_to_start() -> None:
    """kill -9 does not stop a run, however often it happens."""
    reported: list[Child] = []
    kills = "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    async with process_manager({}, on_failure=reported.append) as manager:
        child = manager.keep("executor", [sys.executable, "-c", kills])
        await until(lambda: len(child.exits) > START_ATTEMPTS, 60)
    assert reported == []
