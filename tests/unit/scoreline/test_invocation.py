"""Commands are printed as they can be typed, however the program was started."""

import sys
from pathlib import Path

import pytest

from scoreline import invocation


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that was started by its path, in a folder that is not on the search path."""
    program = tmp_path / "bin" / "scoreline"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(program)])
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    invocation._program.cache_clear()
    return program


def test_a_program_that_is_not_on_the_path_is_named_by_its_path(started: Path) -> None:
    """The shell would not find its name."""
    assert invocation.typed("batch", "list") == f"{started} batch list"
    message = "See: scoreline batch list, or scoreline.yaml, or the scoreline of others."
    assert invocation.as_started(message) == message.replace("scoreline batch", f"{started} batch")


def test_a_program_on_the_path_is_named_by_its_name(started: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its path would only be longer."""
    monkeypatch.setenv("PATH", str(started.parent))
    assert invocation.typed("replay", "e 1") == "scoreline replay 'e 1'"
    assert invocation.as_started("Run: scoreline db migrate") == "Run: scoreline db migrate"
