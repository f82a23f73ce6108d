"""Directories of sandboxed runs: removed with their run or, after kill -9, at the next executor start.

An executor has one directory below the system's temporary one and holds an advisory lock on it (flock). The
kernel releases the lock with the process, however that ended. So a directory whose lock can be acquired has
no owner. A process that has created one verifies, under the lock, that it was not removed in between.
"""

import atexit
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from itertools import count
from pathlib import Path

_PREFIX = "scoreline-runs-"
_PROBE_PREFIX = "scoreline-probe-"


@contextmanager
def run_directory() -> Iterator[Path]:
    """Make a directory for one run, closed to other users, and remove it afterwards."""
    directory = _own_directory().next_path()
    directory.mkdir(mode=0o700)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextmanager
def probe_file() -> Iterator[Path]:
    """Make a file that every user may read, locked like a directory, and remove it afterwards."""
    with tempfile.NamedTemporaryFile(prefix=_PROBE_PREFIX, delete=False) as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        os.fchmod(file.fileno(), 0o644)
        path = Path(file.name)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)


def remove_abandoned(temporary: Path | None = None) -> int:
    """Remove what this user's processes left that have ended; returns how many there were."""
    folder = temporary or Path(tempfile.gettempdir())
    found = (path for prefix in (_PREFIX, _PROBE_PREFIX) for path in folder.glob(f"{prefix}*"))
    return sum(_remove_if_abandoned(path) for path in found)


class LockedDirectory:
    """A directory that exists, and is locked, for as long as this process."""

    def __init__(self) -> None:
        self._numbers = count(1)
        self._path, self._lock = self._created()
        self._owner = os.getpid()

    def next_path(self) -> Path:
        """Return the path of the next run's directory."""
        return self._path / str(next(self._numbers))

    def remove(self) -> None:
        """Remove it, unless this is a process that its owner has forked."""
        if os.getpid() == self._owner:
            shutil.rmtree(self._path, ignore_errors=True)
            os.close(self._lock)

    def _created(self) -> tuple[Path, int]:
        while True:
            path = Path(tempfile.mkdtemp(prefix=_PREFIX))
            with suppress(FileNotFoundError):
                lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
                fcntl.flock(lock, fcntl.LOCK_EX)
                if path.exists():
                    return path, lock
                os.close(lock)


@cache
def _own_directory() -> LockedDirectory:
    directory = LockedDirectory()
    atexit.register(directory.remove)
    return directory


def _remove_if_abandoned(path: Path) -> bool:
    try:
        lock = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:  # removed meanwhile, or of another user
        return False
    try:
        if os.fstat(lock).st_uid != os.geteuid():
            return False
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(path)
    except BlockingIOError:  # its owner is alive
        return False
    else:
        return True
    finally:
        os.close(lock)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
