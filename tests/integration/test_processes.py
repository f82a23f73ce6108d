"""The local process manager: in which order it stops its children, and how it ends them at once."""

import sys
from pathlib import Path

from scoreline.processes import process_manager
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


async def test_those_that_serve_others_are_stopped_after_them(tmp_path: Path) -> None:
    """What an executor finishes at the very end still finds a storage worker."""
    log = tmp_path / "log"
    log.touch()
    async with process_manager({}) as manager:
        for name, seconds, serves in (("storage", "0", True), ("executor", "0.2", False)):
            manager.keep(name, [sys.executable, "-c", STOPS, str(log), name, seconds], serves=serves)
        await until(lambda: log.read_text().count("ready") == 2, 30)
    assert log.read_text().split("\n")[2:4] == ["executor stopped", "storage stopped"]


async def test_children_that_are_killed_get_no_last_words(tmp_path: Path) -> None:
    """Whoever interrupts a second time is in a hurry."""
    log = tmp_path / "log"
    log.touch()
    async with process_manager({}) as manager:
        child = manager.keep("executor", [sys.executable, "-c", STOPS, str(log), "executor", "0"])
        await until(lambda: "ready" in log.read_text(), 30)
        manager.kill()
        await until(lambda: child.exits, 30)
        assert (child.exits, "stopped" in log.read_text()) == ([-9], False)
