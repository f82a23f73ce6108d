"""CPU and memory usage of processes and their descendants, from /proc."""

import os
from dataclasses import dataclass
from pathlib import Path

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True, slots=True)
class ProcessCpu:
    """Of one process: its command, CPU seconds including children it has buried, and memory in bytes."""

    pid: int
    command: str
    cpu: float
    rss: int


def family(*roots: int) -> list[ProcessCpu]:
    """Read the usage of processes and all their descendants."""
    parents, found = {}, {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            _, _, rest = (place / "stat").read_text().rpartition(") ")
            command = (place / "cmdline").read_text().replace("\0", " ").strip()
        except OSError:
            continue  # ended meanwhile
        fields = rest.split()
        pid = int(place.name)
        parents[pid] = int(fields[1])
        ticks = sum(int(fields[at]) for at in (11, 12, 13, 14))
        found[pid] = ProcessCpu(pid, command, ticks / TICK, int(fields[21]) * PAGE)
    return [used for pid, used in found.items() if _descends(pid, parents, set(roots))]


def _descends(pid: int, parents: dict[int, int], roots: set[int]) -> bool:
    while pid:
        if pid in roots:
            return True
        pid = parents.get(pid, 0)
    return False


def server_pids(root: Path) -> list[int]:
    """Return the pids of the embedded servers that live under a directory."""
    files = [*root.rglob("valkey.pid"), *root.rglob("postmaster.pid")]
    return [int(path.read_text().split(maxsplit=1)[0]) for path in files]


def service_of(used: ProcessCpu) -> str:
    """Return the component that a process belongs to."""
    words = {
        "storage-worker start": "storage_worker",
        "worker start": "executors",
        "coordinator start": "coordinator",
        "valkey": "redis",
        "postgres": "postgres",
    }
    return next((service for word, service in words.items() if word in used.command), "submitter")
