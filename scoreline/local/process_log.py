"""The log that processes of one run share: where it is, and why a process of it could not start."""

import json
import time
from contextlib import suppress
from pathlib import Path

from scoreline.private_files import close_to_others, private_folder, private_root

KEPT = 30 * 86_400.0
"""Seconds that the log of a run is kept."""
TAIL = 64 * 1024
"""Bytes at the end of a log that are read for the last error."""


def log_of(data_dir: Path, batch_id: str) -> Path:
    """Name the log of a batch's processes, in a folder that exists; old ones are removed."""
    folder = private_folder(private_root(data_dir) / "logs")
    for path in folder.glob("*.log"):
        close_to_others((path,))
        with suppress(OSError):
            if time.time() - path.stat().st_mtime > KEPT:
                path.unlink()
    return folder / f"{batch_id}.log"


def last_error(path: Path, *, since: int) -> str:
    """Return the last line of the last traceback or message after an offset; empty if there is none."""
    with suppress(OSError), path.open("rb") as log:
        start = max(since, path.stat().st_size - TAIL)
        log.seek(start)
        if start > since:
            log.readline()  # most likely the end of a line, which is no message
        lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
        plain = [line for line in lines if not line.startswith("{")]
        return plain[-1] if plain else _logged(lines)
    return ""


def _logged(lines: list[str]) -> str:
    for line in reversed(lines):
        with suppress(ValueError):
            found = json.loads(line)
            text = str(found.get("exception") or found.get("message") or "").strip()
            if text and found.get("level") in {"error", "critical"}:
                return text.splitlines()[-1]
    return ""
