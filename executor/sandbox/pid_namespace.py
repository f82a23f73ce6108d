"""The PID namespace of one run, referenced by a pidfd of its first process.

A process id may be reused, a pidfd never refers to another process. SIGKILL to a namespace's first process
ends all of its processes, and the kernel reports the first as ended only after all others: a readable pidfd
proves that the namespace is empty.
"""

import asyncio
import os
import select
import signal
from contextlib import suppress
from pathlib import Path

from executor.sandbox.bubblewrap_status import BubblewrapStatus
from executor.sandbox.memory_cgroup import MemoryCgroup


class PidNamespace:
    """All processes of one run."""

    def __init__(self, account: BubblewrapStatus, cgroup: MemoryCgroup | None = None) -> None:
        self._account = account
        self._cgroup = cgroup
        self._pidfd: int | None = None

    @property
    def first(self) -> int | None:
        """The first process as the host numbers it, once it is held."""
        return self._account.first if self._pidfd is not None else None

    def hold(self, parent: int) -> bool:
        """Open the pidfd of the first process, if that runs and `parent` is its parent."""
        first = self._account.first
        if self._pidfd is None and first:
            self._pidfd = _open_child(first, parent)
        return self._pidfd is not None

    def join_cgroup(self) -> bool:
        """Make the first process, which is held, a member of the run's cgroup; true where there is none."""
        try:
            if self._cgroup and self.first:
                self._cgroup.add(self.first)
        except OSError:  # it has just ended
            return False
        return True

    def kill(self, parent: int) -> None:
        """SIGKILL the first process, and with it all others; again or too late, do nothing."""
        self.hold(parent)
        if self._pidfd is not None:
            with suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._pidfd, signal.SIGKILL)

    async def emptied(self, seconds: float) -> bool:
        """Wait until every process has ended; false where one is left after so many seconds."""
        return self._pidfd is None or _has_ended(self._pidfd) or await _ends(self._pidfd, seconds)

    def close(self) -> None:
        """Close the pidfd."""
        if self._pidfd is not None:
            os.close(self._pidfd)


def _open_child(pid: int, parent: int) -> int | None:
    """Open a pidfd; nothing where the process has ended, or the id is now another's."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return None
    # Read after the pidfd was opened, and valid only if the process is still running then.
    if _parent(pid) == parent and not _has_ended(pidfd):
        return pidfd
    os.close(pidfd)
    return None


def _parent(pid: int) -> int | None:
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except OSError:
        return None
    return int(status.partition("\nPPid:")[2].split(maxsplit=1)[0])


def _has_ended(pidfd: int) -> bool:
    poll = select.poll()  # select() refuses descriptors above 1023
    poll.register(pidfd, select.POLLIN)
    return bool(poll.poll(0))


async def _ends(pidfd: int, seconds: float) -> bool:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(pidfd, ended.set)
    try:
        async with asyncio.timeout(seconds):
            await ended.wait()
    except TimeoutError:
        return False
    finally:
        loop.remove_reader(pidfd)
    return True
