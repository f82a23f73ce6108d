"""Private files: logs, data and spans belong to their owner alone, whatever the umask is.

Directories are 0700, files 0600. What an earlier version left readable is repaired when it is used again.
Exports are not private: they are written where the user names them, with the user's umask.
"""

import os
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

OWN = frozenset({"servers", "logs", "observe.log"})
"""All that Scoreline keeps in its data directory."""
PRIVATE_UMASK = 0o077
"""For programs that create files of their own in the data directory."""


def default_root() -> Path:
    """The user's own data directory for Scoreline."""
    data_home = os.environ.get("XDG_DATA_HOME")
    return (Path(data_home) if data_home else Path.home() / ".local" / "share") / "scoreline"


def private_root(root: Path) -> Path:
    """Make the data directory; one that holds other people's files, too, keeps its mode."""
    try:
        root.mkdir(mode=0o700, parents=True)
    except FileExistsError:  # perhaps made by another process in this moment
        if OWN.issuperset(each.name for each in root.iterdir()):
            _close_to_others(root, 0o700)
    else:
        root.chmod(0o700)
    return root


def private_folder(path: Path) -> Path:
    """Make a directory that only its owner can enter, and close it to others if it is there."""
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    _close_to_others(path, 0o700)
    return path


def open_private(path: Path, *, truncate: bool = False) -> BinaryIO:
    """Open a file for writing at its end that only its owner can read."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | (os.O_TRUNC if truncate else os.O_APPEND)
    descriptor = os.open(path, flags, 0o600)
    with suppress(PermissionError):  # of another user, who chose the mode
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.fchmod(descriptor, 0o600)
    return os.fdopen(descriptor, "wb", buffering=0)


def close_to_others(paths: Iterable[Path]) -> None:
    """Take from others what an earlier version let them read."""
    for path in paths:
        with suppress(OSError):
            if not path.is_symlink():
                _close_to_others(path, 0o700 if path.is_dir() else 0o600)


def _close_to_others(path: Path, mode: int) -> None:
    found = path.stat()
    is_ours = found.st_uid == os.geteuid()
    if is_ours and stat.S_IMODE(found.st_mode) & 0o077 and (path.is_dir() or path.is_file()):
        path.chmod(mode)
