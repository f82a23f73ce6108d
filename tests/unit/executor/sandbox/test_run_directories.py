"""Directories of runs: those of live processes stay, those of processes that were killed are removed."""

import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from executor.sandbox import run_directories as module
from executor.sandbox.run_directories import LockedDirectory, probe_file, remove_abandoned, run_directory

OWNER = """
import os, signal, sys
from executor.sandbox.run_directories import run_directory
with run_directory() as directory:
    (directory / "file").write_text("left")
    print(directory, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


def start_owner(temporary: Path) -> tuple["subprocess.Popen[str]", Path]:
    """Start a process that has a run directory, and wait until it does."""
    process = subprocess.Popen(
        [sys.executable, "-c", OWNER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert process.stdout
    return process, Path(process.stdout.readline().strip())


def test_a_directory_is_removed_only_after_its_process(temporary: Path) -> None:
    """While its owner lives it stays; after kill -9 it goes, with all that is in it."""
    others = temporary / "scoreline-of-another-kind"
    others.mkdir()
    process, directory = start_owner(temporary)
    with process:
        assert remove_abandoned() == 0
        assert (directory / "file").exists()
        process.kill()
    assert (directory / "file").exists()
    assert remove_abandoned() == 1
    assert list(temporary.iterdir()) == [others]


def test_a_probe_of_a_killed_process_is_removed(temporary: Path) -> None:
    """The file of a self-test stays while it is used; one without an owner goes."""
    (temporary / f"{module._PROBE_PREFIX}abandoned").touch()
    with probe_file() as path:
        assert remove_abandoned() == 1
        assert list(temporary.iterdir()) == [path]
    assert list(temporary.iterdir()) == []


def test_a_process_that_ends_leaves_nothing(temporary: Path) -> None:
    """An end without a signal removes the directory of the process."""
    process, directory = start_owner(temporary)
    with process:
        assert directory.stat().st_mode & 0o777 == 0o700
    assert list(temporary.iterdir()) == []


def test_a_link_is_never_followed(temporary: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A link that another user has put there leads to no removal."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (temporary / f"{module._PREFIX}link").symlink_to(elsewhere)
    assert remove_abandoned() == 0
    assert elsewhere.is_dir()


def test_a_directory_that_is_removed_before_its_lock_is_made_again(
    temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The window between creation and lock belongs to a start elsewhere: the owner creates another."""
    lock = fcntl.flock
    removed: list[Path] = []

    def flock(descriptor: int, operation: int) -> None:
        if not removed:
            removed.extend(temporary.iterdir())
            removed[0].rmdir()
        lock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", flock)
    directory = LockedDirectory()
    assert directory.next_path().parent.is_dir()
    assert directory.next_path().parent != removed[0]
    directory.remove()


def test_each_run_has_a_directory_of_its_own() -> None:
    """Two at a time are two directories, and both are gone afterwards."""
    with run_directory() as one, run_directory() as other:
        assert one != other
    assert not one.exists()
    assert not other.exists()
