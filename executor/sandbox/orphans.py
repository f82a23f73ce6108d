"""Processes that an executor killed by SIGKILL may leave behind: sandboxes that were not built yet.

Bubblewrap starts two processes in turn. If the outer one dies with its executor before it has released the
inner one, the inner one waits forever. It runs no program and holds no data of a job. The next process that
uses sandboxes kills it.
"""

import os
import signal
from contextlib import suppress
from pathlib import Path

from executor.sandbox.init import INIT


def kill_orphans(bubblewrap: str) -> None:
    """SIGKILL every inner process of bubblewrap that was started here and has lost its outer one."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # ended meanwhile, or another user's
            if _is_orphan(process, Path(bubblewrap).name):
                _kill(process, Path(bubblewrap).name)


def _kill(process: Path, bubblewrap: str) -> None:
    pidfd = os.pidfd_open(int(process.name))
    try:
        if _is_orphan(process, bubblewrap):  # the process id may have been reused
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    finally:
        os.close(pidfd)


def _is_orphan(process: Path, bubblewrap: str) -> bool:
    if not _is_bubblewrap(process, bubblewrap):
        return False
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    is_first = status["NSpid"].split()[1:] == ["1"]
    return is_first and not _is_bubblewrap(Path("/proc", status["PPid"].strip()), bubblewrap)


def _is_bubblewrap(process: Path, bubblewrap: str) -> bool:
    words = (process / "cmdline").read_bytes().split(b"\0")
    return Path(os.fsdecode(words[0])).name == bubblewrap and INIT.encode() in words
