"""The report of `scoreline sandbox check`."""

import json
from typing import Any

import pytest

from executor.sandbox.bubblewrap_options import PrivilegeMode
from executor.sandbox.isolation_checks import IsolationCheck
from executor.sandbox.probe import ProbeResult
from scoreline.command_error import CommandError
from scoreline.reports import sandbox_report
from scoreline.reports.sandbox_report import report_sandbox

HELD = IsolationCheck("network", "connect to a port", "network namespace")
OPEN = IsolationCheck("files", "read a file", "mount namespace", evidence="read /etc/shadow")
MODE = PrivilegeMode.USER_NAMESPACE


class Report:
    """Runs the report on the result of a self-test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch, self.capsys = monkeypatch, capsys

    def run(self, result: ProbeResult, *, as_json: bool = False) -> tuple[str, str]:
        """Return what was printed, and the error."""
        for module in (sandbox_report, "executor.sandbox.sandbox"):
            name = module if isinstance(module, str) else module.__name__
            self.monkeypatch.setattr(f"{name}.probe", lambda *_: result)
        error = ""
        try:
            report_sandbox("", as_json=as_json, quick=True)
        except CommandError as raised:
            error = str(raised)
        return self.capsys.readouterr().out, error

    def document(self, result: ProbeResult) -> dict[str, Any]:
        """Return the printed JSON."""
        return dict(json.loads(self.run(result, as_json=True)[0]))


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Report:
    return Report(monkeypatch, capsys)


def test_checks_that_held_are_listed_and_counted(report: Report) -> None:
    """The privilege mode comes first."""
    printed, error = report.run(ProbeResult(MODE, checks=(HELD,)))
    assert printed.splitlines() == [
        "privilege mode: a user namespace",
        "  held  network           connect to a port (network namespace)",
        "the check held",
    ]
    assert error == ""


def test_a_check_that_failed_is_marked_with_its_evidence_and_fails_the_command(report: Report) -> None:
    """The error names each failed check."""
    printed, error = report.run(ProbeResult(MODE, checks=(HELD, OPEN)))
    assert "  OPEN  files             read a file (mount namespace): read /etc/shadow" in printed
    assert error.startswith("1 of 2 checks failed: files. Run untrusted code on another host")


def test_a_host_without_a_sandbox_or_without_checks_fails(report: Report) -> None:
    """No check at all is no success, neither in text nor in JSON."""
    missing = ProbeResult(None, "bwrap is missing")
    assert "bwrap is missing" in report.run(missing)[1]
    assert report.run(ProbeResult(MODE))[1].startswith("The sandbox has no python3, so no check was run")
    assert [report.document(result)["held"] for result in (missing, ProbeResult(MODE))] == [False, False]


def test_the_document_has_every_check_with_its_result(report: Report) -> None:
    """One open check makes the whole not held."""
    document = report.document(ProbeResult(MODE, checks=(HELD, OPEN)))
    assert (document["footing"], document["trouble"], document["held"]) == ("a user namespace", "", False)
    assert [(each["name"], each["held"]) for each in document["checks"]] == [
        ("network", True),
        ("files", False),
    ]
    assert report.document(ProbeResult(MODE, checks=(HELD,)))["held"] is True
