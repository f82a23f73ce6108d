"""No program starts before its executor confirms it."""

import subprocess

import pytest

from executor.sandbox.assembly import assembled
from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.job import SandboxJob
from executor.sandbox.probe import BUBBLEWRAP, TOOL_ENVIRON
from tests.integration.sandboxed import PRIVILEGE_MODES, needs_sandbox

pytestmark = needs_sandbox


@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
def test_no_program_starts_without_the_executors_confirmation(privilege_mode: PrivilegeMode) -> None:
    """The first process announces itself, and ends where the executor has died instead of answering."""
    with (
        assembled(SandboxJob(("echo", "started"), 5), privilege_mode, BUBBLEWRAP) as assembly,
        subprocess.Popen(
            assembly.argv,
            env=TOOL_ENVIRON,
            pass_fds=assembly.descriptors,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
        ) as process,
    ):
        assert process.communicate()[0] == b"."
