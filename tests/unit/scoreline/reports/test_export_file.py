"""The file of an export: written whole, or not at all."""

import os
from contextlib import suppress
from pathlib import Path
from threading import Thread

import pytest

from scoreline.command_error import CommandError
from scoreline.reports.export_file import STDOUT, whole_file


def write(path: Path, data: bytes = b"new", *, force: bool = False) -> None:
    with whole_file(path, force=force) as file:
        file.write(data)


def test_a_file_has_its_name_only_once_it_is_complete(tmp_path: Path) -> None:
    """Until then readers see no file."""
    path = tmp_path / "out"
    with whole_file(path, force=False) as file:
        file.write(b"new")
        assert not path.exists()
    assert path.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [path]


def test_an_error_leaves_the_old_file_and_no_part(tmp_path: Path) -> None:
    """An export that fails replaces nothing, even with --force."""
    path = tmp_path / "out"
    path.write_bytes(b"old")
    with suppress(RuntimeError), whole_file(path, force=True) as file:
        file.write(b"new")
        raise RuntimeError
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_during_the_export_is_kept(tmp_path: Path) -> None:
    """The check is repeated before the rename."""
    path = tmp_path / "out"
    with pytest.raises(CommandError, match="To replace it: --force"), whole_file(path, force=False):
        path.write_bytes(b"other")
    assert path.read_bytes() == b"other"


def test_a_link_stays_and_its_file_is_replaced(tmp_path: Path) -> None:
    """The link is resolved before the rename."""
    link, path = tmp_path / "link", tmp_path / "out"
    path.write_bytes(b"old")
    link.symlink_to(path)
    write(link, force=True)
    assert (link.is_symlink(), path.read_bytes()) == (True, b"new")


def test_a_pipe_is_written_in_place(tmp_path: Path) -> None:
    """A rename would replace the pipe, and its reader would get nothing."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    received: list[bytes] = []
    reader = Thread(target=lambda: received.append(path.read_bytes()))
    reader.start()
    write(path)
    reader.join()
    assert (received, path.is_fifo()) == ([b"new"], True)


def test_an_error_of_the_system_names_the_file(tmp_path: Path) -> None:
    """A closed pipe passes: the command ends without a message."""
    with pytest.raises(CommandError, match=r"out can't be written: No such file or directory\."):
        write(tmp_path / "none" / "out")
    with pytest.raises(BrokenPipeError), whole_file(tmp_path / "out", force=False):
        raise BrokenPipeError


def test_a_dash_is_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    """It is flushed, and never refused."""
    write(STDOUT)
    assert capfdbinary.readouterr().out == b"new"
