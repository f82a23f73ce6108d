"""Watching how much a sandbox takes together: limits of the kernel are for each process.

A sandbox has a process table of its own, so one listing names all that runs in it and nothing else. It is
read from outside, through the root of its first process.

Memory is what processes hold of their own, also where it is swapped out, with their page tables, and what
they share. Files of the private directories lie in memory, too, but the kernel keeps a limit on their size,
so they are left out of what is shared. An empty file has no size and takes a kilobyte of the kernel's
memory, so files are counted.
"""

import asyncio
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from executor.sandbox.bubblewrap_options import PRIVATE_PLACES
from executor.sandbox.job import MEGABYTE, KilledBy, SandboxLimits
from executor.sandbox.memory_cgroup import MemoryCgroup
from executor.sandbox.pid_namespace import PidNamespace
from executor.sandbox.process import SandboxProcess
from executor.sandbox.socket_buffers import socket_buffers

_INTERVAL = 0.03
_HOST = Path("/proc")
_FIRST_PROCESS = 1
_PRIVATE = ("RssAnon", "VmSwap", "VmPTE")
_SHARED = "RssShmem"


class SandboxUsage(NamedTuple):
    """What a sandbox takes at one moment."""

    processes: int = 0
    """Threads count, too: the kernel's own limit of them does not hold for root in a user namespace."""
    memory: int = 0
    files: int = 0


class _ProcessUsage(NamedTuple):
    """Threads and bytes that one process holds."""

    threads: int = 0
    private: int = 0
    shared: int = 0


async def watch(
    child: SandboxProcess,
    namespace: PidNamespace,
    limits: SandboxLimits,
    cgroup: MemoryCgroup | None = None,
) -> None:
    """Kill a run that takes more than it may."""
    while True:
        await asyncio.sleep(_INTERVAL)
        first = namespace.first
        if first and (limit := exceeded(usage(first, cgroup), limits)):
            child.kill(limit)
        if cgroup and cgroup.ran_out():
            child.kill("memory")


def exceeded(now: SandboxUsage, limits: SandboxLimits) -> KilledBy | None:
    """Name the limit that a run has exceeded, if it has."""
    if now.processes > limits.processes + _FIRST_PROCESS:
        return "processes"
    if now.memory > limits.memory_mb * MEGABYTE:
        return "memory"
    return "disk" if now.files > limits.files else None


def usage(first: int, cgroup: MemoryCgroup | None = None) -> SandboxUsage:
    """Add up what all processes of a sandbox take; a cgroup, if there is one, counts memory better."""
    root = Path(f"/proc/{first}/root")
    table = root / "proc"
    try:
        if table.stat().st_dev == _HOST.stat().st_dev:  # the walls are not up, this is all of the host
            return SandboxUsage()
        pids = [name for name in os.listdir(table) if name.isdigit()]  # noqa: PTH208 - names, not paths
        spaces = [os.statvfs(f"{root}{place}") for place in PRIVATE_PLACES]
    except OSError:  # it has just ended, or is not yet there
        return SandboxUsage()
    held = [_held(table / pid) for pid in pids]
    stored = sum((space.f_blocks - space.f_bfree) * space.f_frsize for space in spaces)
    private, shared = cgroup.memory() if cgroup else _together(held)
    return SandboxUsage(
        processes=sum(each.threads for each in held),
        memory=private + max(0, shared - stored) + socket_buffers(Path(f"/proc/{first}/net")),
        files=sum(space.f_files - space.f_ffree for space in spaces),
    )


def _together(held: list[_ProcessUsage]) -> tuple[int, int]:
    # What is shared is mostly the same in every process; memory without a file is refused anyway.
    return sum(each.private for each in held), max((each.shared for each in held), default=0)


def _held(process: Path) -> _ProcessUsage:
    with suppress(OSError):  # ended since it was listed
        lines = (process / "status").read_text(errors="replace").splitlines()
        counted = dict(line.split(":", 1) for line in lines if line.startswith(("Rss", "Vm", "Threads")))
        found = {name: int(amount.split()[0]) for name, amount in counted.items()}
        private = sum(found.get(name, 0) for name in _PRIVATE)
        return _ProcessUsage(found.get("Threads", 0), private * 1024, found.get(_SHARED, 0) * 1024)
    return _ProcessUsage()
