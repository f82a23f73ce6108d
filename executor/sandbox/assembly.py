"""Putting a sandbox together: the command line, and the descriptors that carry all else.

Bubblewrap reads its options, the filter of system calls and the job's texts from open files, so that a
program finds neither paths nor data of its host in the command line of the process above it. One more
descriptor brings bubblewrap's account of the run. Only where that has an exit code did the program start.
"""

import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from executor.sandbox.bubblewrap_options import PrivilegeMode, confined, isolation_options
from executor.sandbox.bubblewrap_status import BubblewrapStatus
from executor.sandbox.init import init_binary, init_command
from executor.sandbox.job import SandboxJob
from executor.sandbox.seccomp import filter_program

_FIRST_UID, _UIDS = 1_900_000_000, 2**20
"""User ids that no account has; each run draws one, because the kernel counts limits by user."""
_FILTERS = {counted: filter_program(shared_memory=counted) for counted in (False, True)}
"""System calls, by whether a memory cgroup counts shared memory."""


@dataclass(frozen=True, slots=True)
class SandboxCommand:
    """The command that is started, and the descriptors it inherits."""

    argv: list[str]
    descriptors: list[int]
    account: BubblewrapStatus


@contextmanager
def assembled(
    job: SandboxJob, privilege_mode: PrivilegeMode, bubblewrap: str, *, shared_memory: bool = False
) -> Iterator[SandboxCommand]:
    """Put a sandbox together for one job; its descriptors are closed behind it."""
    with ExitStack() as stack:
        texts = {name: _open(stack, content) for name, content in job.texts.items()}
        init = _open(stack, init_binary())
        options = _open(
            stack,
            b"".join(os.fsencode(o) + b"\0" for o in isolation_options(job, privilege_mode, texts, init)),
        )
        account, status_fd = _pipe(stack)
        argv = [bubblewrap, "--args", str(options), "--json-status-fd", str(status_fd)]
        descriptors = [*texts.values(), *job.inherited, init, options, status_fd]
        if calls := _FILTERS[shared_memory]:
            descriptors.append(_open(stack, calls))
            argv += ["--seccomp", str(descriptors[-1])]
        uid = _FIRST_UID + secrets.randbelow(_UIDS) if privilege_mode is PrivilegeMode.OWN_UID else None
        argv += ["--", *init_command(has_input=bool(job.stdin)), *confined(job, uid)]
        yield SandboxCommand(argv, descriptors, BubblewrapStatus(account))


def _open(stack: ExitStack, content: bytes) -> int:
    descriptor = os.memfd_create("scoreline")
    stack.callback(os.close, descriptor)
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _pipe(stack: ExitStack) -> tuple[int, int]:
    reading, writing = os.pipe()
    stack.callback(os.close, reading)
    stack.callback(os.close, writing)
    os.set_blocking(reading, False)
    return reading, writing
