"""Metrics addresses: each process registers its own in a folder for Prometheus' `file_sd_configs`.

Prometheus takes a process whose address disappears for one that was shut down, and WorkerDown stays silent.
So a process removes its own address at its shutdown, and a killed process can't. The address of a killed
process is removed when it starts again (by its name or at its address), else when the alert is over in any
case: after the memory window of the alerts, counted from when the start of another process found it dead.
"""

import json
import os
import re
import socket
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from scoreline.observability.thresholds import Thresholds

ANYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - addresses to recognise, not to listen on
NAME = "__meta_scoreline_name"
"""The label with the name of a process. Prometheus drops labels that begin so, once it has relabelled."""
_PID = re.compile(r"-(\d+)\.json$")


@contextmanager
def registered(folder: Path, job: str, *, name: str, host: str, port: int) -> Iterator[Path]:
    """Register the address of this process until the block is left."""
    folder.mkdir(parents=True, exist_ok=True)
    here = socket.gethostname()
    address = f"{here if host in ANYWHERE else _bracketed(host)}:{port}"
    group = {"targets": [address], "labels": {"job": job, NAME: name}}
    _remove_dead(folder, here, group)
    path = folder / f"{job}-{here}-{os.getpid()}.json"
    _mark(path).unlink(missing_ok=True)  # of a process that had this pid before
    beside = path.with_suffix(".new")  # Prometheus may look at any moment
    beside.write_text(json.dumps([group]), encoding="utf-8")
    beside.replace(path)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _remove_dead(folder: Path, here: str, group: Mapping[str, object]) -> None:
    """Remove what dead processes of this host left, once it is replaced or its alert is over."""
    for path in folder.glob(f"*-{here}-*.json"):
        found = _PID.search(path.name)
        if found and not _lives(int(found[1])) and (_is_replaced(path, group) or _is_expired(path)):
            path.unlink(missing_ok=True)
            _mark(path).unlink(missing_ok=True)


def _is_replaced(path: Path, group: Mapping[str, object]) -> bool:
    """Whether a file has the address, or the job and the name, of the process that starts."""
    try:
        (other,) = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, TypeError):  # removed meanwhile, or damaged
        return False
    return isinstance(other, dict) and any(other.get(part) == group[part] for part in group)


def _is_expired(path: Path) -> bool:
    """Whether a process was found dead longer ago than alerts look back; marks it when found first."""
    with suppress(FileNotFoundError):
        return time.time() - _mark(path).stat().st_mtime > Thresholds().memory_window.total_seconds()
    _mark(path).touch()
    return False


def _mark(path: Path) -> Path:
    """Return the file whose time is that of finding the process dead."""
    return path.with_suffix(".dead")


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
