"""Programs that attack the first process of their sandbox."""

from pathlib import Path


def running(token: str) -> list[int]:
    """The processes with this word in their command lines, but those that have ended."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if token.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found
