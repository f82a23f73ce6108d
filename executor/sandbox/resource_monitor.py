"""Monitoring of a sandbox's total resource usage: the kernel's limits apply to each process.

A sandbox has its own PID namespace, so one listing contains all of its processes and no other. It is read
from outside, through the root of its first process.

Memory is the private memory of all processes, swapped or not, with their page tables, plus shared memory.
Files of the private directories are in memory, too, but the kernel limits their size, so they are not
counted as shared. An empty file takes a kilobyte of kernel memory, so files are counted.
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
    """The resource usage of a sandbox at one moment."""

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
    """Return the limit that a run has exceeded, if any."""
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
        if (
            table.stat().st_dev == _HOST.stat().st_dev
        ):  # the sandbox is not built yet: these are the host's processes
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
    # Shared memory is mostly the same in every process; memory without a file is rejected anyway.
    return sum(each.private for each in held), max((each.shared for each in held), default=0)


def _held(process: Path) -> _ProcessUsage:
    with suppress(OSError):  # ended since it was listed
        lines = (process / "status").read_text(errors="replace").splitlines()
        counted = dict(line.split(":", 1) for line in lines if line.startswith(("Rss", "Vm", "Threads")))
        found = {name: int(amount.split()[0]) for name, amount in counted.items()}
        private = sum(found.get(name, 0) for name in _PRIVATE)
        return _ProcessUsage(found.get("Threads", 0), private * 1024, found.get(_SHARED, 0) * 1024)
    return _ProcessUsage()
