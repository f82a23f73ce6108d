"""A command on a real terminal of a given width, and what it wrote there."""

import os
import pty
import subprocess
import termios
from collections.abc import Mapping
from pathlib import Path

from tests.integration.worker import SCORELINE, environment

CHUNK = 65_536


def on_terminal(
    *arguments: str, cwd: Path, environ: Mapping[str, str], columns: int = 80
) -> tuple[int, str]:
    """Run a command to its end on a pseudo-terminal; return its exit code and what it wrote."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    others = {
        name: value for name, value in environment(**environ).items() if name not in {"COLUMNS", "LINES"}
    }
    with subprocess.Popen(
        [SCORELINE, *arguments],
        cwd=cwd,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={"TERM": "xterm-256color", **others},
        start_new_session=True,
    ) as process:
        os.close(theirs)
        written = _all_of(ours)
    os.close(ours)
    return process.returncode, written.decode(errors="replace").replace("\r\n", "\n")


def _all_of(terminal: int) -> bytes:
    """Read until the last process that has the terminal open is gone, which Linux reports as an error."""
    parts: list[bytes] = []
    while True:
        try:
            part = os.read(terminal, CHUNK)
        except OSError:
            return b"".join(parts)
        if not part:
            return b"".join(parts)
        parts.append(part)
