"""Processes of this machine, as /proc shows them; one that ends meanwhile is not an error."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path


def children(pid: int) -> list[int]:
    """List the processes that a process has started, and that run or were not reaped yet."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def descendants(pid: int) -> Iterator[int]:
    """List the processes that a process has started, theirs included."""
    for child in children(pid):
        yield child
        yield from descendants(child)


def command_line(pid: int) -> list[str]:
    """Return the words of a process' command line; none if it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").rstrip("\0").split("\0")
    except OSError:
        return []


def is_running(pid: int) -> bool:
    """Whether a process runs; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def kill(pid: int) -> None:
    """Send SIGKILL to a process, unless it has ended."""
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
