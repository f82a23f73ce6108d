"""How this command was started, so that every command it prints can be typed as printed."""

import re
import shlex
import shutil
import sys
from functools import lru_cache
from pathlib import Path

NAME = "scoreline"
_COMMANDS = (
    "batch|replay|worker|coordinator|storage-worker|dataset|db|demo|observe|trace|quarantine|provider-sim"
)
_SUGGESTED = re.compile(rf"(?<![\w./-]){NAME} (?=(?:{_COMMANDS})\b)")


def program() -> str:
    """Return what to type for this program: its name where the shell finds it, else its path."""
    return _program(sys.argv[0])


@lru_cache(maxsize=4)
def _program(started_as: str) -> str:
    started = Path(started_as)
    found = shutil.which(NAME)
    if started.name == NAME and "/" in started_as:
        return NAME if found and started.exists() and Path(found).samefile(started) else started_as
    beside = Path(sys.executable).with_name(NAME)
    if started.name != "__main__.py" or started.parent.name != NAME or not beside.exists():
        return NAME
    return NAME if found and Path(found).samefile(beside) else str(beside)


def typed(*words: str) -> str:
    """Write a command of this program as a shell takes it."""
    return f"{shlex.quote(program())} {shlex.join(words)}"


def batch_command(verb: str, batch_id: str, *more: str) -> str:
    """Write a `batch` command that may be typed next."""
    return typed("batch", verb, batch_id, *more)


def as_started(text: str) -> str:
    """Rewrite the commands that a message suggests to the way this program was started."""
    return text if program() == NAME else _SUGGESTED.sub(lambda _: f"{shlex.quote(program())} ", text)
