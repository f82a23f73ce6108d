"""SIGINT while a command starts: one line for `batch run`, and never in a process that is no command."""

import os
import signal
from collections.abc import Iterator

import pytest

from scoreline.startup_interrupt import INTERRUPTED, NOTHING_ACCEPTED, StartupInterrupt

RUN = ["/usr/bin/scoreline", "batch", "run", "--json"]
LIST = ["scoreline", "batch", "list"]


@pytest.fixture(autouse=True)
def default_handler() -> Iterator[None]:
    """Start with Python's own handler, and restore the handler of the test run."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def exits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Collect the exit codes of processes that would end at once."""
    codes: list[int] = []

    def end(code: int) -> None:
        codes.append(code)
        raise SystemExit(code)

    monkeypatch.setattr(os, "_exit", end)
    return codes


def interrupt() -> None:
    """Send SIGINT to this process."""
    signal.raise_signal(signal.SIGINT)


@pytest.mark.parametrize(("argv", "line"), [(RUN, NOTHING_ACCEPTED), (LIST, "interrupted")])
def test_an_interrupt_during_imports_ends_the_process(
    argv: list[str], line: str, exits: list[int], capfd: pytest.CaptureFixture[str]
):
    """Nothing has to be released yet."""
    StartupInterrupt().install(argv)
    with pytest.raises(SystemExit):
        interrupt()
    assert exits == [INTERRUPTED]
    assert capfd.readouterr().err == f"{line}\n"


def test_after_the_imports_the_line_is_printed_once(capfd: pytest.CaptureFixture[str]):
    """Each further signal raises as well, so that whatever was started is released."""
    interrupts = StartupInterrupt()
    interrupts.install(RUN)
    interrupts.imported()
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            interrupt()
    assert interrupts.received
    assert capfd.readouterr().err == f"{NOTHING_ACCEPTED}\n"


def test_an_accepted_batch_is_not_denied(capfd: pytest.CaptureFixture[str]):
    """The line would be wrong: there is a batch."""
    interrupts = StartupInterrupt()
    interrupts.install(RUN)
    interrupts.imported()
    interrupts.accepted()
    with pytest.raises(KeyboardInterrupt):
        interrupt()
    assert capfd.readouterr().err == ""


def test_other_commands_get_the_default_handler_back():
    """They report an interrupt themselves."""
    interrupts = StartupInterrupt()
    interrupts.install(LIST)
    assert signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    interrupts.imported()
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_another_process_and_an_ignored_signal_stay_as_they_are():
    """A program that imports the package, and a command under nohup, keep their handlers."""
    for argv in (["pytest", "batch", "run"], []):
        StartupInterrupt().install(argv)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    interrupts = StartupInterrupt()
    interrupts.install(RUN)
    interrupts.imported()
    assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
