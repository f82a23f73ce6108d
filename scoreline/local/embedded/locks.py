"""Advisory locks, which the kernel drops with their last holder however it died."""

import fcntl
import os
import time
from pathlib import Path

_POLL = 0.005


def try_lock(path: Path, operation: int = fcntl.LOCK_EX) -> int | None:
    """The descriptor that holds the lock, or None while others hold it; lock files stay."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, operation | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor


def set_linger(membership: int, seconds: float) -> None:
    """Record in the users' lock file how long the servers outlive their last user."""
    os.ftruncate(membership, 0)
    os.pwrite(membership, str(seconds).encode(), 0)


def linger_remaining(membership: int) -> float:
    """Return the seconds that unused servers have left; none once their directory is removed."""
    state = os.fstat(membership)
    linger = float(os.pread(membership, 32, 0) or 0)
    if not state.st_nlink or not linger:
        return 0.0
    return min(max(0.0, state.st_mtime + linger - time.time()), linger)


class PollDeadline:
    """A deadline for loops that poll."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._began = time.monotonic()

    def pause(self) -> bool:
        """Wait one poll, longer as time passes; False once the time is up."""
        waited = time.monotonic() - self._began
        time.sleep(_POLL + waited / 20)
        return waited < self._seconds
