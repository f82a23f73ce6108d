"""The self-test of the sandbox."""

from typing import Any

import pytest

from executor.sandbox.bubblewrap_options import PrivilegeMode, isolation_options
from executor.sandbox.probe import BUBBLEWRAP, failure_of
from tests.integration.sandboxed import PRIVILEGE_MODES, needs_sandbox

pytestmark = needs_sandbox


@pytest.mark.skipif(PrivilegeMode.USER_NAMESPACE not in PRIVILEGE_MODES, reason="no user namespaces here")
def test_the_self_test_refuses_a_first_process_that_can_be_traced(monkeypatch: pytest.MonkeyPatch) -> None:
    """A readable executable makes one; so does the setting fs.suid_dumpable=1, which the refusal names."""

    def readable(*arguments: Any) -> list[str]:
        return ["0555" if option == "0111" else option for option in isolation_options(*arguments)]

    monkeypatch.setattr("executor.sandbox.assembly.isolation_options", readable)
    assert "suid_dumpable" in failure_of(BUBBLEWRAP, PrivilegeMode.USER_NAMESPACE)
