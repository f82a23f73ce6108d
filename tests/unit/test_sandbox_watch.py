"""Watching a sandbox from outside."""

import os

import pytest

from executor.sandbox.job import KilledBy, Limits
from executor.sandbox.watch import Usage, exceeded, usage


def test_the_processes_of_the_host_are_never_taken_for_the_sandboxs() -> None:
    """Until its walls are up, a sandbox sees the host: counted then, it would be killed for its host."""
    assert usage(os.getpid()) == Usage()


def test_a_sandbox_that_is_gone_takes_nothing() -> None:
    """It may end between two looks."""
    assert usage(2**22 + 1) == Usage()


@pytest.mark.parametrize(
    ("now", "limit"),
    [
        (Usage(processes=9, memory=5 << 20, files=7), None),
        (Usage(processes=10), "processes"),
        (Usage(memory=(5 << 20) + 1), "memory"),
        (Usage(files=8), "disk"),
    ],
)
def test_each_limit_may_be_used_up_and_not_exceeded(now: Usage, limit: KilledBy | None) -> None:
    """The first process is not the program's; what is reached exactly is allowed."""
    assert exceeded(now, Limits(processes=8, memory_mb=5, files=7)) == limit
