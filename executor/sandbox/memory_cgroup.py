"""Memory cgroups: the kernel's count of all memory of a run, shared and kernel memory included.

An executor creates groups only below a cgroup that an operator has delegated to it (`EVAL_WORKER_CGROUP`);
it does not touch those of systemd or a container engine. Each run has its own group, which its first
process joins before the program starts, so that every descendant is a member.

Both versions of the interface are supported. The limit of a group is that of memory plus both private
directories, which are tmpfs. If the kernel killed a process of the group, the run has exceeded its memory
limit.
"""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import count
from pathlib import Path
from typing import NamedTuple

from executor.sandbox.job import MEGABYTE, SandboxLimits

_PREFIX = "scoreline-"
_KERNEL_MB = 16
"""For stacks, page tables and other tables of the kernel, beyond what programs may hold."""


class CgroupMemory(NamedTuple):
    """Bytes that a group holds."""

    private: int
    shared: int


@dataclass(frozen=True, slots=True)
class CgroupInterface:
    """The files of one version of the memory controller, and the names in them."""

    limit: str
    events: str
    private: str
    shared: str


V1 = CgroupInterface("memory.limit_in_bytes", "memory.oom_control", "total_rss", "total_shmem")
V2 = CgroupInterface("memory.max", "memory.events", "anon", "shmem")


@dataclass(frozen=True, slots=True)
class MemoryCgroup:
    """The group of one run."""

    path: Path
    interface: CgroupInterface

    def add(self, pid: int) -> None:
        """Add a process and its future descendants; raises `OSError`."""
        (self.path / "cgroup.procs").write_text(str(pid))

    def memory(self) -> CgroupMemory:
        """Count what the members hold, mapped or not."""
        found = _figures(self.path / "memory.stat")
        return CgroupMemory(found[self.interface.private], found[self.interface.shared])

    def ran_out(self) -> bool:
        """Whether the kernel has killed a process at the limit."""
        return _figures(self.path / self.interface.events).get("oom_kill", 0) > 0


class DelegatedCgroup:
    """A cgroup below which this process may make groups."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._interface = V1 if (path / V1.limit).exists() else V2
        self._numbers = count(1)

    @cached_property
    def failure(self) -> str:
        """Why no group can be made or joined here, and what to do; nothing where one can."""
        try:
            self._enable()
            self._remove_abandoned()
            with self.group(SandboxLimits()) as group, subprocess.Popen(["/bin/sleep", "10"]) as process:
                try:
                    group.add(process.pid)
                finally:
                    process.kill()
        except OSError as error:
            return (
                f"the cgroup {self._path} can't be used ({error.strerror}: {error.filename}): delegate a "
                "memory cgroup without processes of its own to this user, or unset EVAL_WORKER_CGROUP"
            )
        return ""

    @contextmanager
    def group(self, limits: SandboxLimits) -> Iterator[MemoryCgroup]:
        """Make a group for one run, and remove it afterwards; raises `OSError`."""
        path = self._path / f"{_PREFIX}{os.getpid()}-{next(self._numbers)}"
        path.mkdir()
        try:
            self._limit(path, (limits.memory_mb + 2 * limits.disk_mb + _KERNEL_MB) * MEGABYTE)
            yield MemoryCgroup(path, self._interface)
        finally:
            with suppress(OSError):  # a member that survives SIGKILL; the next start tries again
                path.rmdir()

    def _limit(self, path: Path, limit: int) -> None:
        (path / self._interface.limit).write_text(str(limit))
        swap = {"memory.memsw.limit_in_bytes": str(limit), "memory.swap.max": "0", "memory.oom.group": "1"}
        for name, value in swap.items():
            if (path / name).exists():
                (path / name).write_text(value)

    def _enable(self) -> None:
        if self._interface is V2:
            (self._path / "cgroup.subtree_control").write_text("+memory")

    def _remove_abandoned(self) -> None:
        """Remove the empty groups of executors that were killed."""
        for path in self._path.glob(f"{_PREFIX}*"):
            owner = path.name.removeprefix(_PREFIX).partition("-")[0]
            if not Path("/proc", owner).exists():
                with suppress(OSError):
                    path.rmdir()


@cache
def delegated_cgroup(path: str) -> DelegatedCgroup | None:
    """The cgroup that was delegated to this process, if one was; the same for the same path."""
    return DelegatedCgroup(Path(path)) if path else None


def _figures(file: Path) -> dict[str, int]:
    pairs = (line.split() for line in file.read_text().splitlines())
    return {name: int(figure) for name, figure in pairs}
