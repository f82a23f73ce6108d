"""Status, exit code, stall reasons and progress line of batch snapshots."""

from datetime import timedelta
from typing import Any

import pytest

from scoreline.reports.batch_status import (
    ExitCode,
    document,
    exit_code,
    gated_exit_code,
    is_over,
    status_word,
)
from tests.builders import START
from tests.unit.scoreline.reports.snapshots import NOW, make_snapshot


@pytest.mark.parametrize(
    ("changes", "word", "over", "code"),
    [
        ({}, "running", False, ExitCode.FINISHED),
        ({"failed": 3}, "running", False, ExitCode.FINISHED),
        ({"state": "completed"}, "running", False, ExitCode.FINISHED),
        ({"state": "completed", "finished_at": NOW}, "completed", True, ExitCode.FINISHED),
        (
            {"state": "running", "finished_at": NOW, "timed_out": 1},
            "completed",
            True,
            ExitCode.DEAD_LETTERS,
        ),
        ({"state": "paused"}, "paused", True, ExitCode.STOPPED),
        ({"state": "cancelled"}, "cancelled", False, ExitCode.STOPPED),
        ({"state": "cancelled", "finished_at": NOW}, "cancelled", True, ExitCode.STOPPED),
        ({"state": "expired", "finished_at": NOW, "failed": 1}, "expired", True, ExitCode.STOPPED),
        ({"kind": "external"}, "external", False, ExitCode.FINISHED),
        ({"kind": "external", "total": 0}, "external", False, ExitCode.FINISHED),
        ({"kind": "external", "completed": 99, "failed": 1}, "external", True, ExitCode.DEAD_LETTERS),
    ],
)
def test_a_snapshot_has_one_status_and_one_exit_code(
    changes: dict[str, Any], word: str, over: bool, code: ExitCode
) -> None:
    """Status word, end and exit code follow from the snapshot."""
    snapshot = make_snapshot(**changes)
    assert (status_word(snapshot), is_over(snapshot), exit_code(snapshot)) == (word, over, code)


OVERSPENT = {"max_tokens": 10, "tokens": 11}


OVER = {"state": "completed", "finished_at": NOW, "completed": 100}


@pytest.mark.parametrize(
    ("changes", "gate", "code"),
    [
        ({**OVER, "passed": 79}, None, ExitCode.FINISHED),
        ({**OVER, "passed": 80}, 0.8, ExitCode.FINISHED),
        ({**OVER, "passed": 79}, 0.8, ExitCode.BELOW_GATE),
        ({**OVER, "completed": 90, "failed": 10, "passed": 79}, 0.8, ExitCode.BELOW_GATE),
        ({**OVER, "completed": 90, "failed": 10, "passed": 80}, 0.8, ExitCode.DEAD_LETTERS),
        ({**OVER, **OVERSPENT, "passed": 79}, 0.8, ExitCode.BELOW_GATE),
        ({**OVER, **OVERSPENT, "passed": 80}, 0.8, ExitCode.OVER_BUDGET),
        ({"state": "paused", "completed": 50, "passed": 1}, 0.8, ExitCode.STOPPED),
        ({"state": "cancelled", "finished_at": NOW, "completed": 100}, 0.8, ExitCode.STOPPED),
        ({"completed": 50, "passed": 1}, 0.8, ExitCode.FINISHED),
    ],
)
def test_the_gate_applies_to_a_batch_that_ran_to_its_end(
    changes: dict[str, Any], gate: float | None, code: ExitCode
) -> None:
    """Exit code 100 takes precedence over 3 and 5, not over 4; a running batch has no gate yet."""
    assert gated_exit_code(make_snapshot(**changes), gate) == code


def test_duration_ends_with_the_batch() -> None:
    """The duration grows until the batch is finished, then it is constant."""
    assert document(make_snapshot())["duration_s"] == 600.0
    assert document(make_snapshot(finished_at=START + timedelta(seconds=5)))["duration_s"] == 5.0
