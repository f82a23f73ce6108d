"""Folders that a sandboxed program must not be given: those with live sockets or Scoreline's own data."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from executor.contract import Permanent
from executor.targets.host_files import host_file


@pytest.fixture(autouse=True)
def readable(tmp_path: Path) -> None:
    """Folders of a test are open to other users, so that no other refusal comes first."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)


@contextmanager
def listening(path: Path, kind: socket.SocketKind = socket.SOCK_STREAM) -> Iterator[socket.socket]:
    """A socket bound by a relative name, as deep folders need it, that a process listens to."""
    here = Path.cwd()
    with socket.socket(socket.AF_UNIX, kind) as listener:
        try:
            os.chdir(path.parent)
            listener.bind(path.name)
        finally:
            os.chdir(here)
        if kind is socket.SOCK_STREAM:
            listener.listen()
        yield listener


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_a_folder_with_a_live_socket_is_refused_until_it_is_dead(
    tmp_path: Path, kind: socket.SocketKind
) -> None:
    """However deep it lies; the refusal names it, the listener is not disturbed, and a dead one is fine."""
    deep = tmp_path / ("x" * 100) / "y"
    deep.mkdir(parents=True)
    with listening(deep / "s", kind) as listener:
        with pytest.raises(Permanent, match=r"live socket .*/s, .*name the files"):
            host_file(tmp_path)
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.recv(1) if kind is socket.SOCK_DGRAM else listener.accept()
    assert host_file(tmp_path) == tmp_path


def test_a_socket_that_appears_later_is_noticed(tmp_path: Path) -> None:
    """A tree is walked once, the list of sockets is read each time."""
    assert host_file(tmp_path) == tmp_path
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "s"))
        listener.listen()
        with pytest.raises(Permanent, match="live socket"):
            host_file(tmp_path)


@pytest.mark.parametrize("given", [".", "data", "data/logs", "data/logs/x.log"])
def test_nothing_around_or_within_the_data_directory_is_given(tmp_path: Path, given: str) -> None:
    """The refusal names the directory and what to set."""
    (tmp_path / "data" / "logs").mkdir(parents=True)
    (tmp_path / "data" / "logs" / "x.log").touch()
    with pytest.raises(Permanent, match=f"data directory {tmp_path}/data.*EVAL_DATA_DIR"):
        host_file(tmp_path / given, data_dir=str(tmp_path / "data"))


def test_a_neighbour_of_the_data_directory_is_given(tmp_path: Path) -> None:
    """A common beginning of the name is no relation, and a link to the directory is no way around."""
    for name in ("data", "data-sets"):
        (tmp_path / name).mkdir()
    assert host_file(tmp_path / "data-sets", data_dir=str(tmp_path / "data"))
    (tmp_path / "link").symlink_to(tmp_path / "data")
    with pytest.raises(Permanent, match="data directory"):
        host_file(tmp_path / "link", data_dir=str(tmp_path / "data"))
