"""A fork server that is launched ahead of need ends with the command that launched it."""

import os
import signal

from scoreline.local.fork_server_launch import can_fork, launched


def test_a_server_that_is_not_used_is_killed() -> None:
    """Nothing of a command that ends early is left behind."""
    with launched(os.environ, wanted=True) as server:
        assert server
        assert server.process.poll() is None
    assert (server.process.returncode, server.connection.fileno()) == (-signal.SIGKILL, -1)


def test_a_server_that_was_taken_is_left_to_its_manager() -> None:
    """It serves beyond the block, and ends when its connection closes."""
    with launched(os.environ, wanted=True) as server:
        assert server
        server.take()
    assert server.process.poll() is None
    server.connection.close()
    assert server.process.wait(60) == 0


def test_none_is_launched_where_none_is_wanted_or_possible() -> None:
    """Commands that start no process, and libraries that are loaded at the start of a process."""
    with (
        launched(os.environ, wanted=False) as unwanted,
        launched({"LD_PRELOAD": "x"}, wanted=True) as loaded,
    ):
        assert (unwanted, loaded) == (None, None)


def test_a_library_that_is_loaded_at_the_start_of_a_process_needs_a_process_of_its_own() -> None:
    """The loader reads LD_PRELOAD when a program is executed, never at a fork."""
    assert can_fork({"PATH": "/bin"})
    assert not can_fork({"LD_PRELOAD": "/lib/faketime.so"})
