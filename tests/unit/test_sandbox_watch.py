"""Watching a sandbox from outside."""

import os

from executor.sandbox.watch import Usage, usage


def test_the_processes_of_the_host_are_never_taken_for_the_sandboxs() -> None:
    """Until its walls are up, a sandbox sees the host: counted then, it would be killed for its host."""
    assert usage(os.getpid()) == Usage(0, 0)


def test_a_sandbox_that_is_gone_takes_nothing() -> None:
    """It may end between two looks."""
    assert usage(2**22 + 1) == Usage(0, 0)
