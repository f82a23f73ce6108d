"""Where a process serves its metrics, left in a folder for Prometheus' `file_sd_configs`.

A killed process can't remove its address: the next process on the same host removes it.
"""

import json
import os
import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

ANYWHERE = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - addresses to recognise, not to listen on
_PID = re.compile(r"-(\d+)\.json$")


@contextmanager
def left_for_prometheus(folder: Path, job: str, *, host: str, port: int) -> Iterator[Path]:
    """Leave word where to fetch metrics, until the block is left."""
    folder.mkdir(parents=True, exist_ok=True)
    here = socket.gethostname()
    _clear_up(folder, here)
    address = f"{here if host in ANYWHERE else _bracketed(host)}:{port}"
    path = folder / f"{job}-{here}-{os.getpid()}.json"
    beside = path.with_suffix(".new")  # Prometheus may look at any moment
    beside.write_text(json.dumps([{"targets": [address], "labels": {"job": job}}]), encoding="utf-8")
    beside.replace(path)
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


def _bracketed(host: str) -> str:
    return f"[{host}]" if ":" in host else host


def _clear_up(folder: Path, here: str) -> None:
    """Remove what processes of this host left that are gone; of others nothing is known."""
    for path in folder.glob(f"*-{here}-*.json"):
        found = _PID.search(path.name)
        if found and not _lives(int(found[1])):
            path.unlink(missing_ok=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True
