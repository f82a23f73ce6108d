"""No program controls the first process of its sandbox, outlives its run, or forges its exit code."""

from uuid import uuid4

import pytest

from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.job import SandboxJob
from executor.sandbox.probe import ProbeResult
from executor.sandbox.sandbox import Sandbox
from tests.integration.executor.sandbox.first_process import running
from tests.integration.sandboxed import PRIVILEGE_MODES, needs_sandbox
from tests.integration.takeover import TAKEOVER

pytestmark = needs_sandbox


@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
async def test_a_program_can_not_take_over_the_first_process(
    privilege_mode: PrivilegeMode, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No way into it works, the exit code is the program's own, and no process is left."""
    monkeypatch.setattr("executor.sandbox.sandbox.probe", lambda _: ProbeResult(privilege_mode))
    token = f"takeover-{uuid4().hex}"
    job = SandboxJob(
        ("python3", "-I", "-S", "program.py", token), 20, texts={"program.py": TAKEOVER.encode()}
    )
    outcome = await Sandbox().run(job)
    assert (outcome.stdout, outcome.exit_code, outcome.killed_by) == (b"", 7, None), outcome
    assert not running(token)
