"""The Lua scripts that executors call in Redis, from all rooms that have some."""

from importlib.util import find_spec
from pathlib import Path

from eventlog.scripts import Script

ROOMS = ("eventlog", "taskqueue", "executor")


def executor_scripts() -> list[Script]:
    """Read every script of the rooms that executors use, without importing them."""
    return [Script(path) for room in ROOMS for path in sorted(_folder(room).rglob("*.lua"))]


def _folder(room: str) -> Path:
    found = find_spec(room)
    assert found is not None  # noqa: S101 - our own packages
    assert found.origin is not None  # noqa: S101 - as above
    return Path(found.origin).parent
