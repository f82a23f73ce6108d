"""Processes that a test starts, stops and kills: forked from a server that has all modules loaded.

A worker takes a second of imports to start by its command. Forked it takes a moment, and is as real a
process: it has its own connections, shares nothing, and `kill -9` leaves it no last word.
"""

import asyncio
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        "tests.chaos.worker",
        "tests.chaos.executor",
        "tests.chaos.submitting",
        "tests.chaos.provider_coordinator",
        "anthropic.types.messages",  # left out where it is not installed
    ]
)


class Child:
    """One process, and its end."""

    def __init__(self, work: Callable[..., None], *arguments: object, log: Path) -> None:
        self._process: ForkServerProcess = _FORKS.Process(
            target=_run, args=(work, arguments, str(log)), daemon=True
        )
        self._process.start()
        self._pid = self._process.pid or 0

    @property
    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.is_alive()

    @property
    def is_still(self) -> bool:
        """Whether it does nothing any more: stopped, or dead."""
        try:
            state = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        return state in {"T", "Z", "X"}

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, if it still lives."""
        if self._process.is_alive():
            os.kill(self._pid, number)

    async def ended(self) -> int:
        """Wait for its end, and return its exit code; a signal's is negative."""
        loop, gone = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._process.sentinel, gone.set)
        try:
            await gone.wait()
        finally:
            loop.remove_reader(self._process.sentinel)
        self._process.join()
        return self._process.exitcode or 0

    async def kill(self) -> None:
        """kill -9, and wait until it is gone."""
        self.signal(signal.SIGKILL)
        await self.ended()


def _run(work: Callable[..., None], arguments: tuple[object, ...], log: str) -> None:
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.dup2(descriptor, 1)
    os.dup2(descriptor, 2)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    work(*arguments)


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    os._exit(1)
