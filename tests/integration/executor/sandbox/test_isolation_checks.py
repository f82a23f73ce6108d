"""The self-test of the sandbox finds any missing isolation, and the sandbox is refused."""

from collections.abc import Callable
from typing import Any

import pytest

from executor.sandbox import probe as probing
from executor.sandbox.bubblewrap_options import isolation_options
from executor.sandbox.probe import BUBBLEWRAP, inspect
from executor.sandbox.sandbox import Sandbox
from tests.integration.sandboxed import PRIVILEGE_MODES, needs_sandbox

Options = list[str]


def without(*options: str) -> Callable[[Options], Options]:
    """Remove options."""
    return lambda given: [option for option in given if option not in options]


def with_(*options: str) -> Callable[[Options], Options]:
    """Add options at the end."""
    return lambda given: [*given, *options]


CHECKS = {
    "network": without("--unshare-net"),
    "files": with_("--bind", "/tmp", "/tmp"),
    "other processes": without("--unshare-pid", "--as-pid-1"),
}


@needs_sandbox
@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
@pytest.mark.parametrize("check", CHECKS)
def test_a_missing_option_fails(monkeypatch: pytest.MonkeyPatch, privilege_mode: Any, check: str) -> None:
    """Without one of bubblewrap's options the error names the missing isolation and the evidence."""
    monkeypatch.setattr(
        "executor.sandbox.assembly.isolation_options",
        lambda *given: CHECKS[check](isolation_options(*given)),
    )
    found = inspect(BUBBLEWRAP, privilege_mode)
    assert found.failure, check
    assert not found.checks or check in {check.name for check in found.checks if not check.held}, found


@needs_sandbox
@pytest.mark.parametrize("privilege_mode", PRIVILEGE_MODES)
def test_a_missing_filter_is_found(monkeypatch: pytest.MonkeyPatch, privilege_mode: Any) -> None:
    """Without the filter of system calls, sockets of other families open."""
    monkeypatch.setattr("executor.sandbox.assembly._FILTERS", {False: b"", True: b""})
    found = inspect(BUBBLEWRAP, privilege_mode)
    assert {"address families", "privileges"} <= {check.name for check in found.checks if not check.held}


@needs_sandbox
def test_a_sandbox_with_a_failed_check_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names the missing isolation, and the command that tests it."""
    monkeypatch.setattr(
        "executor.sandbox.assembly.isolation_options",
        lambda *given: CHECKS["network"](isolation_options(*given)),
    )
    probing.probe.cache_clear()
    try:
        refusal = Sandbox().check()
    finally:
        probing.probe.cache_clear()
    assert "network: connected to" in refusal
    assert "scoreline sandbox check" in refusal
