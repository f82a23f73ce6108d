"""Limits that do not hold are found."""

import pytest

from executor.sandbox.bubblewrap_options import confined
from executor.sandbox.job import SandboxOutcome
from executor.sandbox.limit_checks import EXCESSES, REFUSED
from executor.sandbox.probe import BUBBLEWRAP, inspect
from tests.integration.sandboxed import PRIVILEGE_MODES, needs_sandbox

Options = list[str]


def without_limits(command: Options) -> Options:
    """Remove all that follows `prlimit` but its separator."""
    return [word for word in command if not word.startswith(("--as=", "--nproc=", "--fsize="))]


@needs_sandbox
def test_missing_limits_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without resource limits the error names those that are unlimited."""
    monkeypatch.setattr(
        "executor.sandbox.assembly.confined", lambda *given: without_limits(confined(*given))
    )
    assert "limits: RLIMIT_" in inspect(BUBBLEWRAP, PRIVILEGE_MODES[0]).failure


@pytest.mark.parametrize("name", EXCESSES)
def test_a_limit_that_does_not_hold_is_found(name: str) -> None:
    """A program that was refused, or killed by its limit, proves the limit; any other end is a failure."""
    excess = EXCESSES[name]
    assert excess.evidence(SandboxOutcome(REFUSED, b"", b"", None, 1)) == ""
    assert excess.evidence(SandboxOutcome(0, b"", b"", None, 1))
    assert excess.evidence(SandboxOutcome(137, b"", b"", "signal", 1))
    if excess.killed_by:
        assert excess.evidence(SandboxOutcome(137, b"", b"", excess.killed_by, 1)) == ""
