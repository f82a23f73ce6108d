"""The Lua scripts that executors call in Redis, from all packages that have some."""

from importlib.util import find_spec
from pathlib import Path

from eventlog.scripts import Script

PACKAGES = ("eventlog", "taskqueue", "executor")


def executor_scripts() -> list[Script]:
    """Read every script of the packages that executors use, without importing them."""
    return [Script(path) for package in PACKAGES for path in sorted(_folder(package).rglob("*.lua"))]


def _folder(package: str) -> Path:
    found = find_spec(package)
    assert found is not None  # noqa: S101 - our own packages
    assert found.origin is not None  # noqa: S101 - as above
    return Path(found.origin).parent
