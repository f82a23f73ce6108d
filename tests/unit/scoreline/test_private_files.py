"""The data directory belongs to its owner alone, whichever process makes it first."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from scoreline.private_files import private_root

MANY = 4


def test_processes_that_make_the_data_directory_at_the_same_time_all_have_it(tmp_path: Path):
    """The first commands on a machine may start together."""
    barrier = Barrier(MANY)

    def make(root: Path) -> int:
        barrier.wait()
        return private_root(root).stat().st_mode & 0o777

    with ThreadPoolExecutor(MANY) as threads:
        for number in range(50):
            roots = [tmp_path / str(number) / "data"] * MANY
            assert set(threads.map(make, roots)) == {0o700}


def test_a_directory_with_files_of_others_keeps_its_mode(tmp_path: Path):
    """One that holds only what Scoreline keeps there is closed to others."""
    tmp_path.chmod(0o755)
    (tmp_path / "notes.txt").touch()
    assert private_root(tmp_path).stat().st_mode & 0o777 == 0o755
    (tmp_path / "notes.txt").rename(tmp_path / "observe.log")
    assert private_root(tmp_path).stat().st_mode & 0o777 == 0o700


def test_a_file_is_no_data_directory(tmp_path: Path):
    """The error is that of the system, which commands explain."""
    (tmp_path / "file").touch()
    with pytest.raises(NotADirectoryError):
        private_root(tmp_path / "file")
