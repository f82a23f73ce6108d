"""The directories of embedded servers: who may reach them, and where they lie."""

import os
from pathlib import Path

import pytest

from scoreline.local.embedded import embedded_servers
from scoreline.private_files import default_root
from tests.integration.scoreline.local.embedded.users import (
    answers,
    home,
)


async def test_only_the_owner_can_reach_the_sockets(root: Path) -> None:
    """Trust on the socket is safe because only the owner can enter its directory."""
    with embedded_servers(root):
        assert home(root).stat().st_mode & 0o777 == 0o700
        assert (home(root) / "valkey.sock").stat().st_mode & 0o777 == 0o700


async def test_stale_files_of_dead_servers_are_no_obstacle(root: Path) -> None:
    """Reused pids, dead sockets and an old status file are recognised as stale."""
    me = str(os.getpid())
    (home(root) / "valkey.pid").write_text(me)
    (home(root) / "postgres" / "postmaster.pid").write_text(f"{me}\n{home(root)}/postgres\n")
    (home(root) / ".s.PGSQL.5432.lock").write_text(f"{me}\n")
    (home(root) / "valkey.sock").touch()
    (home(root) / "status.json").write_text('{"guardian": 1, "servers": {}}')
    with embedded_servers(root) as servers:
        assert answers(servers)


def test_default_root_follows_the_desktop_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    """XDG_DATA_HOME is honoured, and its usual value is the fallback."""
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert default_root() == Path("/data/scoreline")
    monkeypatch.delenv("XDG_DATA_HOME")
    assert default_root() == Path.home() / ".local/share/scoreline"
