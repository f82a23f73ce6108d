"""A damaged append-only file of the embedded Valkey: recognised, moved aside, and reported once.

Valkey ends at start where it can't read its files. Redis may be lost whole (Postgres has every accepted
evaluation, executors keep their tails), so the guardian moves the data directory aside, under a name with
the time, and starts an empty server, whose epochs are new. Only damage counts: a full disk or a missing
permission stays an error. The next command that has the servers, or the one that has them, prints the
notice.
"""

import os
from pathlib import Path

from eventlog.clock import utc_now

_DAMAGE = (
    "Bad file format reading the append only file",
    "Unrecoverable error reading the append only file",
    "Unable to obtain the AOF file",
    "AOF manifest",
    "Internal error in RDB reading",
    "Short read or OOM loading DB",
    "Wrong signature trying to load DB",
    "Fatal error loading the DB",
    "Wrong RDB checksum",
    "Unknown command",
    "crashed by signal",
    "ASSERTION FAILED",
)
"""What Valkey logs of files that it can't load, or that make it crash."""
_NO_DAMAGE = (
    "No space left",
    "Permission denied",
    "Read-only file system",
    "Cannot allocate memory",
    "Too many open",
)
_REASON_LENGTH = 200


def damage_in(log: str) -> str:
    """Return the line of a failed start that reports damage, or nothing."""
    if any(other in log for other in _NO_DAMAGE):
        return ""
    found = (line for line in log.splitlines() if any(sign in line for sign in _DAMAGE))
    return next((_message(line) for line in found), "")


def has_lost_manifest(data: Path) -> bool:
    """Whether there are files that no manifest lists: Valkey would start empty, and log nothing of it."""
    files = data / "appendonlydir"
    return any(files.glob("*.aof.*")) and not any(files.glob("*.manifest"))


def move_aside(data: Path, reason: str) -> None:
    """Keep a damaged data directory under another name, and leave a notice."""
    kept = data.with_name(f"{data.name}.damaged-{utc_now():%Y%m%dT%H%M%S.%fZ}")
    data.rename(kept)
    notice = (
        f"Embedded Valkey: the append-only file is damaged ({reason}); moved to {kept}. "
        "Redis starts empty: work in flight is recovered from Postgres, and answers not stored yet may be "
        "requested again."
    )
    print(notice, flush=True)  # noqa: T201 - standard output is the guardian's log
    with _notices(data.parent).open("a", encoding="utf-8") as notices:
        notices.write(f"{notice}\n")


def take_notices(home: Path) -> list[str]:
    """Return what is to be printed; each notice is returned to one command only."""
    taken = _notices(home).with_suffix(f".{os.getpid()}")
    try:
        _notices(home).rename(taken)  # atomic: of two commands, one has it
        notices = taken.read_text(encoding="utf-8").splitlines()
        taken.unlink()
    except OSError:
        return []
    return notices


def _notices(home: Path) -> Path:
    return home / "valkey.notices"


def _message(line: str) -> str:
    """Leave out process, time and level, and characters that no terminal should get."""
    message = line.partition(" # ")[2] or line
    return "".join(each for each in message if each.isprintable())[:_REASON_LENGTH].strip()
