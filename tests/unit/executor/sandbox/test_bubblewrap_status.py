"""Bubblewrap's status report, read as far as it has been written."""

import os
from collections.abc import Iterator

import pytest

from executor.sandbox.bubblewrap_status import BubblewrapStatus


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    """The descriptor to read, which does not block, and the one to write."""
    reader, writer = os.pipe()
    os.set_blocking(reader, False)
    try:
        yield reader, writer
    finally:
        os.close(reader)
        os.close(writer)


def test_before_bubblewrap_writes_nothing_is_known(pipe: tuple[int, int]) -> None:
    """The descriptor is not waited for."""
    status = BubblewrapStatus(pipe[0])
    assert (status.first, status.exit_code) == (None, None)


def test_a_line_counts_when_it_is_complete(pipe: tuple[int, int]) -> None:
    """A part of a line is kept until the rest has arrived."""
    status = BubblewrapStatus(pipe[0])
    os.write(pipe[1], b'{ "child-pid": 1')
    assert (status.first, status.exit_code) == (None, None)
    os.write(pipe[1], b'7, "cgroup-namespace": 4 }\n{ "exit')
    assert (status.first, status.exit_code) == (17, None)
    os.write(pipe[1], b'-code": 0 }\n')
    assert (status.first, status.exit_code) == (17, 0)
