"""The one error of this package, and the advice that goes with it."""

import errno
import os
import shutil
from pathlib import Path

_TIGHT = 64 * 1024 * 1024
_LINES_SHOWN = 8
# What our own questions leave in PostgreSQL's log while it starts.
_ECHOES = ("database system is starting up", "not yet accepting", "not been yet reached")


class EmbeddedServerError(Exception):
    """An embedded server cannot serve: which one, what happened, its last words, what to do."""

    def __init__(self, server: str, problem: str, *, advice: str, log: str = "") -> None:
        super().__init__(server, problem, advice, log)
        self.server = server
        self.problem = problem
        self.advice = advice
        self.log = log

    def __str__(self) -> str:
        last_words = f"\nLast log lines:\n{self.log}" if self.log else ""
        return f"Embedded {self.server}: {self.problem}{last_words}\nWhat to do: {self.advice}"


def log_tail(log: Path, since: int = 0) -> str:
    """The last lines that a log gained after position `since`."""
    try:
        with log.open("rb") as stream:
            stream.seek(max(since, log.stat().st_size - 8192))
            lines = stream.read().decode(errors="replace").splitlines()
    except OSError:
        return ""
    relevant = [line for line in lines if not any(echo in line for echo in _ECHOES)]
    return "\n".join(f"  {line}" for line in relevant[-_LINES_SHOWN:])


def advice(home: Path, log: str) -> str:
    """What a person can do about a failure whose last log lines are `log`."""
    if "No space left" in log or _free(home) < _TIGHT:
        return _make_room(home)
    if "unshare" in log:
        return (
            "PostgreSQL refuses to run as root and user namespaces are not allowed here: "
            "run as an ordinary user, or set EVAL_POSTGRES_URL to a server of your own."
        )
    return f"read the logs in {home}; or set EVAL_REDIS_URL and EVAL_POSTGRES_URL to servers of your own."


def file_error(home: Path, error: OSError) -> EmbeddedServerError:
    """The clear form of a file system that refuses."""
    problem = f"cannot use the data directory {home} ({os.strerror(error.errno or 0)})."
    fallback = "make it writable for this user, or set EVAL_DATA_DIR to another directory."
    full = error.errno in {errno.ENOSPC, errno.EDQUOT}
    return EmbeddedServerError("servers", problem, advice=_make_room(home) if full else fallback)


def _make_room(home: Path) -> str:
    return f"free some disk space for {home}, then try again."


def _free(home: Path) -> int:
    existing = next((path for path in (home, *home.parents) if path.exists()), Path("/"))
    return shutil.disk_usage(existing).free
