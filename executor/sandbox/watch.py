"""Watching how much a sandbox takes together: limits of the kernel are for each process.

A sandbox has a process table of its own, so one listing names all that runs in it and nothing else. It is
read from outside, through the root of its first process.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from executor.sandbox.buffers import socket_buffers
from executor.sandbox.child import Child
from executor.sandbox.job import MEGABYTE, Limits
from executor.sandbox.pid_namespace import PidNamespace

_INTERVAL = 0.05
_HOST = Path("/proc")
_PAGE = os.sysconf("SC_PAGESIZE")
_LINKS = 2
"""Links to a directory without subdirectories, of which a process has one for each thread."""
_OUR_OWN = 1
"""The first process."""


class Usage(NamedTuple):
    """What a sandbox takes at one moment."""

    processes: int
    """Threads count, too: the kernel's own limit of them does not hold for root in a user namespace."""
    resident: int


async def watch(child: Child, namespace: PidNamespace, limits: Limits) -> None:
    """Kill a run that takes more than it may."""
    while True:
        await asyncio.sleep(_INTERVAL)
        pid = namespace.first
        now = usage(pid) if pid else Usage(0, 0)
        if now.processes > limits.processes + _OUR_OWN:
            child.kill("processes")
        elif now.resident > limits.memory_mb * MEGABYTE:
            child.kill("memory")


def usage(first: int) -> Usage:
    """Add up what all processes of a sandbox hold of their own, shared pages left out."""
    table = Path(f"/proc/{first}/root/proc")
    try:
        if table.stat().st_dev == _HOST.stat().st_dev:  # the walls are not up, this is all of the host
            return Usage(0, 0)
        pids = [name for name in os.listdir(table) if name.isdigit()]  # noqa: PTH208 - names, not paths
    except OSError:  # it has just ended, or is not yet there
        return Usage(0, 0)
    buffers = socket_buffers(Path(f"/proc/{first}/net"))
    resident = sum(_resident(table / pid) for pid in pids)
    return Usage(sum(_threads(table / pid) for pid in pids), resident + buffers)


def _threads(process: Path) -> int:
    with suppress(OSError):  # ended since it was listed
        return (process / "task").stat().st_nlink - _LINKS
    return 0


def _resident(process: Path) -> int:
    with suppress(OSError):  # ended since it was listed
        pages = (process / "statm").read_text().split()
        return (int(pages[1]) - int(pages[2])) * _PAGE
    return 0
