"""Measuring a sandbox from outside."""

import os

import pytest

from executor.sandbox.job import KilledBy, SandboxLimits
from executor.sandbox.resource_monitor import SandboxUsage, exceeded, usage


def test_the_processes_of_the_host_are_never_taken_for_the_sandboxs() -> None:
    """Until its namespaces exist, a sandbox sees the host's processes, and would be killed for them."""
    assert usage(os.getpid()) == SandboxUsage()


def test_a_sandbox_that_is_gone_takes_nothing() -> None:
    """It may end between two samples."""
    assert usage(2**22 + 1) == SandboxUsage()


@pytest.mark.parametrize(
    ("now", "limit"),
    [
        (SandboxUsage(processes=9, memory=5 << 20, files=7), None),
        (SandboxUsage(processes=10), "processes"),
        (SandboxUsage(memory=(5 << 20) + 1), "memory"),
        (SandboxUsage(files=8), "disk"),
    ],
)
def test_each_limit_may_be_used_up_and_not_exceeded(now: SandboxUsage, limit: KilledBy | None) -> None:
    """The first process is not counted as the program's; a limit may be reached exactly."""
    assert exceeded(now, SandboxLimits(processes=8, memory_mb=5, files=7)) == limit
