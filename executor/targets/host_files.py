"""The files of the host that a sandboxed program may be given, read-only.

A read-only mount does not keep a program from connecting to a Unix socket below it. So a directory with a
live socket is rejected, and every directory that contains Scoreline's data directory, where the embedded
servers listen, or lies within it.
"""

import os
import socket
import stat
from collections.abc import Iterator
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from executor.contract import Permanent

_NEVER_WHOLE = frozenset({"/", "/boot", "/etc", "/home", "/opt", "/root", "/srv", "/tmp", "/var"})  # noqa: S108
_NEVER = ("/dev", "/proc", "/run", "/sys", "/var/run")
_OTHERS_MAY = {False: stat.S_IROTH, True: stat.S_IROTH | stat.S_IXOTH}
_LISTENERS = Path("/proc/net/unix")


def host_file(path: Path, *, data_dir: str = "") -> Path:
    """Find a file that may be shown to a program; raises `Permanent` where it may not or can't be."""
    try:
        found = path.resolve(strict=True)
        mode = found.stat().st_mode
    except OSError as error:
        raise Permanent("files", f"{path} can't be given to the program: {error.strerror}") from None
    whole = str(found) in _NEVER_WHOLE or found == Path.home()
    if whole or any(found.is_relative_to(place) for place in _NEVER):
        raise Permanent("files", f"{found} is not given to programs: name what they need of it")
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise Permanent("files", f"{found} is neither a file nor a directory")
    _refuse_data_directory(found, data_dir)
    wanted = _OTHERS_MAY[stat.S_ISDIR(mode)]
    if os.geteuid() == 0 and mode & wanted != wanted:
        raise Permanent(
            "files", f"{found} can't be read by the program, which is not root: chmod o+rX {found}"
        )
    if stat.S_ISDIR(mode):
        _refuse_live_sockets(found)
    return found


def _refuse_data_directory(found: Path, data_dir: str) -> None:
    data = Path(data_dir).resolve() if data_dir else None
    if data and (data.is_relative_to(found) or found.is_relative_to(data)):
        relation = "lies within" if found.is_relative_to(data) else "contains"
        raise Permanent(
            "files",
            f"{found} {relation} Scoreline's data directory {data}, whose sockets and logs no program may "
            f"reach: name the files that the program needs, or set EVAL_DATA_DIR to another directory",
        )


def _refuse_live_sockets(folder: Path) -> None:
    for place in (*_listeners_below(folder), *_special_files_below(folder)):
        if _is_live(place):
            raise Permanent(
                "files",
                f"{folder} contains the live socket {place}, which the program could connect to: name the "
                f"files that the program needs, or move the socket",
            )


def _listeners_below(folder: Path) -> Iterator[Path]:
    """The sockets that processes of this network namespace have bound now."""
    for line in _LISTENERS.read_text(errors="surrogateescape").splitlines():
        path = Path(*line.split(maxsplit=7)[7:])
        if path.is_relative_to(folder):
            yield path


@lru_cache(maxsize=256)
def _special_files_below(folder: Path) -> tuple[Path, ...]:
    """The special files of a tree, walked once a process: other network namespaces bind sockets, too."""
    return tuple(_walked(folder))


def _walked(folder: Path) -> Iterator[Path]:
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(Path(entry.path))
                elif not (entry.is_file(follow_symlinks=False) or entry.is_symlink()):
                    yield Path(entry.path)


def _is_live(path: Path) -> bool:
    """Whether a process listens to this socket; a stream listener does not notice a datagram socket."""
    try:
        parent = os.open(path.parent, os.O_PATH | os.O_DIRECTORY)
    except OSError:
        return False
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as caller:
        try:
            caller.connect(f"/proc/self/fd/{parent}/{path.name}")  # addresses have at most 108 bytes
        except (ConnectionRefusedError, FileNotFoundError):
            return False
        except OSError:  # of another type, or closed to this user: alive
            return True
        finally:
            os.close(parent)
    return True
