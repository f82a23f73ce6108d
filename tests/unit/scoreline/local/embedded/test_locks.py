"""Locks between processes, and how long servers outlive their last user."""

import fcntl
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from scoreline.local.embedded.locks import linger_remaining, set_linger, try_lock


def test_a_held_lock_is_not_given_again(tmp_path: Path):
    """It is free once its descriptor is closed; the file stays."""
    path = tmp_path / "lock"
    held = try_lock(path)
    assert held is not None
    assert try_lock(path) is None
    os.close(held)
    again = try_lock(path)
    assert again is not None
    os.close(again)
    assert path.stat().st_mode & 0o777 == 0o600


def test_a_shared_lock_admits_others_and_no_owner(tmp_path: Path):
    """Users of the servers share theirs."""
    path = tmp_path / "lock"
    users = [try_lock(path, fcntl.LOCK_SH) for _ in range(2)]
    assert None not in users
    assert try_lock(path) is None
    for user in users:
        os.close(user or 0)


def test_an_error_of_the_file_system_is_no_held_lock(tmp_path: Path):
    """A folder that is missing is reported, not waited for."""
    with pytest.raises(FileNotFoundError):
        try_lock(tmp_path / "missing" / "lock")


@pytest.fixture
def membership(tmp_path: Path) -> Iterator[int]:
    """The users' lock file."""
    descriptor = try_lock(tmp_path / "users", fcntl.LOCK_SH)
    assert descriptor is not None
    yield descriptor
    os.close(descriptor)


def test_servers_outlive_their_last_user_as_long_as_it_set(membership: int):
    """Counted from the time of writing; a shorter number replaces a longer one whole."""
    assert linger_remaining(membership) == 0
    set_linger(membership, 12_345.5)
    set_linger(membership, 600)
    assert 0 < linger_remaining(membership) <= 600
    os.utime(membership, (time.time() - 601,) * 2)
    assert linger_remaining(membership) == 0


def test_a_clock_that_was_set_back_lengthens_nothing(membership: int):
    """A time of writing in the future counts as now."""
    set_linger(membership, 600)
    os.utime(membership, (time.time() + 10_000,) * 2)
    assert linger_remaining(membership) == 600


def test_servers_of_a_removed_directory_have_no_time_left(membership: int, tmp_path: Path):
    """They hold files that nothing can reach any more."""
    set_linger(membership, 600)
    (tmp_path / "users").unlink()
    assert linger_remaining(membership) == 0
