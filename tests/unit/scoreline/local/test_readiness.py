"""A child's report that it has started: once, to the descriptor that its manager named."""

import os

import pytest

from scoreline.local.readiness import READY_FD, ready_report


def test_the_report_is_sent_once_and_its_descriptor_is_closed(monkeypatch: pytest.MonkeyPatch):
    """The variable is removed at once, so that children of the child do not inherit it."""
    read_from, report_to = os.pipe()
    monkeypatch.setenv(READY_FD, str(report_to))
    report = ready_report()
    assert READY_FD not in os.environ
    report()
    assert [os.read(read_from, 10), os.read(read_from, 10)] == [b"r", b""]
    os.close(read_from)


def test_without_a_manager_there_is_no_report(monkeypatch: pytest.MonkeyPatch):
    """A command that a user typed reports to no process."""
    monkeypatch.delenv(READY_FD, raising=False)
    ready_report()()
