"""The demo from end to end: its exit code, and its document for programs."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from projections.verification.verify import Difference, VerificationResult
from scoreline.local.demo import run
from scoreline.local.demo.outcome import Outcome
from scoreline.local.demo.run import run_demo
from scoreline.local.supervisor import BatchSupervisor
from scoreline.servers.addresses import Servers
from tests.unit.scoreline.local.demo.demo_outcomes import outcome


@contextmanager
def lent(*_: object, **__: object) -> Iterator[Servers]:
    """Lend servers that are not used."""
    yield Servers("redis://localhost", "postgresql://localhost/x")


def demonstrated(
    monkeypatch: pytest.MonkeyPatch, *, stopped: int | None = None, found: Outcome | None = None
) -> int:
    """Run a demo whose batch ends in this way."""

    async def submitted(*_: object, **__: object) -> tuple[str, int]:
        return "demo", 400

    async def over(_: object) -> int | None:
        return stopped

    async def outcome_of(*_: object) -> Outcome:
        assert found is not None
        return found

    async def no_history(*_: object) -> None:
        return None

    monkeypatch.setattr(run, "ready_servers", lent)
    monkeypatch.setattr(run, "telemetry_for", lent)
    monkeypatch.setattr(run, "submit", submitted)
    monkeypatch.setattr(BatchSupervisor, "until_over", over)
    monkeypatch.setattr(run._Demo, "_outcome", outcome_of)
    monkeypatch.setattr(run._Demo, "_history", no_history)
    return run_demo(executors=2, as_json=True)


def test_a_good_outcome_is_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Everything else is on standard error."""
    assert demonstrated(monkeypatch, found=outcome()) == 0
    printed = capsys.readouterr()
    assert json.loads(printed.out)["batch_id"] == "demo"
    assert "demo: 400 evaluations accepted, 200 questions of GSM8K" in printed.err


def test_a_problem_is_an_exit_code(monkeypatch: pytest.MonkeyPatch):
    """Tables that differ from the log are one."""
    assert demonstrated(monkeypatch, found=outcome()) == 0
    verified = VerificationResult("demo", 400, 9)
    verified.add(Difference("scorecards", "e-1", "score", "0", "1"))
    assert demonstrated(monkeypatch, found=outcome(verified=verified)) == 1


def test_a_demo_that_was_stopped_has_no_outcome(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """Its exit code is that of the run."""
    assert demonstrated(monkeypatch, stopped=130) == 130
    assert capsys.readouterr().out == ""
