"""What a run may leave behind: processes, mounts, files, cgroups, segments, descriptors, memory."""

import ctypes
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

MEGABYTE = 1024 * 1024
GROWTH = 64 * MEGABYTE
"""By how much the resident memory of an executor may grow over the whole corpus."""
PEAK = 300 * MEGABYTE
_SUBREAPER = 36
_FIRST_UID = 1_900_000_000
"""User ids from here on belong to sandboxes."""


def become_subreaper() -> None:
    """Adopt every orphan among the descendants, so that a process that outlives its sandbox is found."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


@dataclass(frozen=True)
class HostInventory:
    """What belongs to this process and to the host at one moment."""

    mounts: frozenset[str]
    descriptors: frozenset[str]
    files: frozenset[Path]
    """In the folder for temporary files."""
    resident: int

    def residue(self, temporary: Path, token: str, known: set[int]) -> list[str]:
        """List what is here now and was not then; `known` are children that may live."""
        now = take_inventory(temporary)
        return [
            *(f"process left: {each}" for each in living_descendants(known)),
            *(f"mount left: {each}" for each in now.mounts - self.mounts),
            *(f"descriptor left: {each}" for each in now.descriptors - self.descriptors),
            *(f"temporary file left: {each}" for each in now.files - self.files),
            *(f"shared memory left: {each}" for each in _shared_memory(token)),
            *_grown(now.resident - self.resident),
        ]


def take_inventory(temporary: Path) -> HostInventory:
    """Look at this process, at the mounts of its namespace, and at a folder for temporary files."""
    return HostInventory(
        frozenset(Path("/proc/self/mountinfo").read_text().splitlines()),
        frozenset(os.listdir("/proc/self/fd")),  # noqa: PTH208 - numbers, not paths
        frozenset(temporary.rglob("*")),
        _memory("VmRSS"),
    )


def peak_memory() -> int:
    """Bytes of resident memory that this process has had at most."""
    return _memory("VmHWM")


def living_descendants(known: set[int]) -> list[str]:
    """Describe descendants of this process that live; dead ones that were adopted are reaped."""
    found = []
    for pid in _children(os.getpid()):
        if pid in known:
            continue
        with suppress(ChildProcessError):
            if os.waitpid(pid, os.WNOHANG)[0] == pid:
                continue
        found.append(_described(pid))
    return found


def _children(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]


def _described(pid: int) -> str:
    try:
        process = Path(f"/proc/{pid}")
        environ = (process / "environ").read_bytes().split(b"\0")
        program = [each.decode() for each in environ if each.startswith(b"ESCAPE_PROGRAM=")]
        return f"{pid} {(process / 'cmdline').read_bytes()!r} {program}"
    except OSError:
        return str(pid)


def _shared_memory(token: str) -> list[str]:
    named = [str(path) for path in Path("/dev/shm").glob(f"*{token}*")]
    return named + [f"segment of user {uid}" for uid in _segment_owners() if uid >= _FIRST_UID]


def _segment_owners() -> list[int]:
    with suppress(OSError):
        lines = Path("/proc/sysvipc/shm").read_text().splitlines()[1:]
        return [int(line.split()[7]) for line in lines]
    return []


def _grown(growth: int) -> list[str]:
    grown = [f"memory left: {growth // MEGABYTE} MB"] if growth > GROWTH else []
    peak = peak_memory()
    return [*grown, f"peak memory: {peak // MEGABYTE} MB"] if peak > PEAK else grown


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    return 0
