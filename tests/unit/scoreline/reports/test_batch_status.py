"""Status, exit code, stall reasons and progress line of batch snapshots."""

import re
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from projections.queries.batches import BatchSnapshot, WaitingCount
from scoreline.reports.batch_poller import BatchPoller
from scoreline.reports.batch_status import (
    ExitCode,
    document,
    exit_code,
    gated_exit_code,
    is_over,
    status_word,
)
from scoreline.reports.batch_view import BatchView
from scoreline.reports.faults import why_ended
from scoreline.reports.fleet_status import FleetStatus
from scoreline.reports.progress_line import ProgressDisplay
from scoreline.reports.stall_reasons import reasons
from taskqueue.executor_registry import ExecutorInstance
from tests.builders import START

STYLE = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]")
NOW = START + timedelta(minutes=10)
RUNNING = BatchSnapshot(
    "b", "submitted", "name", "default", "", "running", "", None, START, None, None, NOW, total=100
)
FLEET = FleetStatus((ExecutorInstance("i-1", "one", slots=4, busy=2),))


def make_snapshot(**changes: Any) -> BatchSnapshot:
    return replace(RUNNING, **changes)


def abandoned(**changes: Any) -> BatchView:
    """Return the view of a local run's batch that no process serves."""
    return BatchView(make_snapshot(**{"run_id": "r", **changes}), fleet=FleetStatus(), leaderless=True)


class Scripted(BatchPoller):
    """A poller that reads the given views."""

    def __init__(self, views: list[BatchView]) -> None:
        self.views = iter(views)
        self._conn, self._abandoned = None, None

    async def pause(self, _: float) -> None:
        """Return at once."""

    async def read(self) -> BatchView:
        return next(self.views)


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


def test_batch_that_goes_well_has_no_reasons() -> None:
    """A batch whose evaluations run, and one that is over, have no stall reasons."""
    waits = (WaitingCount("running", 100, NOW, "b.00000001"),)
    assert reasons(BatchView(make_snapshot(), waits, fleet=FLEET)) == []
    assert reasons(BatchView(make_snapshot(state="completed", finished_at=NOW))) == []


def test_a_batch_of_ended_evaluations_waits_for_a_coordinator_to_close_it() -> None:
    """The only reason is the missing coordinator, not a missing executor."""
    [reason] = reasons(BatchView(make_snapshot(completed=100)))
    assert "a coordinator has yet to close it" in reason


def test_an_abandoned_local_run_has_one_suggestion() -> None:
    """The only suggestion is `batch resume`; a coordinator of the fleet would not serve the run."""
    for ended in (0, 40, 100):
        [reason] = reasons(abandoned(completed=ended))
        assert reason.startswith("No process serves it: the command that ran it has ended")
        assert reason.endswith("To continue: scoreline batch resume b")


@pytest.mark.parametrize(
    "view",
    [
        BatchView(
            make_snapshot(run_id="r", now=START + timedelta(seconds=14)),
            fleet=FleetStatus(),
            leaderless=True,
        ),
        BatchView(make_snapshot(run_id="r"), fleet=FleetStatus()),
        BatchView(
            make_snapshot(run_id="r"),
            fleet=FleetStatus((ExecutorInstance("i-1", "one", run_id="r"),)),
            leaderless=True,
        ),
        BatchView(
            make_snapshot(run_id="r"), fleet=FleetStatus(unavailable="Redis is away."), leaderless=True
        ),
        BatchView(make_snapshot(), fleet=FleetStatus(), leaderless=True),
    ],
    ids=["starting", "led", "with an executor", "redis away", "of the fleet"],
)
def test_a_run_is_abandoned_only_if_nothing_of_it_is_alive(view: BatchView) -> None:
    """A run that starts, leads, executes, or whose state is unknown is not abandoned."""
    assert not view.is_abandoned
    assert not any("batch resume" in reason for reason in reasons(view) if view.snapshot.run_id)


async def test_watching_ends_when_its_local_run_is_gone() -> None:
    """Polling stops 15 s after the run was first read as gone; a new run restarts the count."""
    at = [(0, "r"), (14, "r"), (16, "s"), (30, "s"), (31, "s")]
    views = [abandoned(run_id=run_id, now=NOW + timedelta(seconds=second)) for second, run_id in at]
    last = await Scripted(views).until_over(lambda _: None)
    assert last is views[-1]


def test_claimed_evaluations_are_reported_before_queued_ones() -> None:
    """The oldest claimed evaluation is reported, though a queued one has waited longer."""
    waits = (
        WaitingCount("queued", 90, START, "b.00000010"),
        WaitingCount("running", 10, START + timedelta(minutes=5), "b.00000003"),
    )
    [reason] = reasons(BatchView(make_snapshot(), waits, fleet=FLEET))
    assert reason.startswith("Longest without an event: b.00000003, running for 5 min 0 s.")


def test_waiting_retries_are_reported_with_their_due_time() -> None:
    """The reason has the number of retries and the time when the first is due."""
    waits = (WaitingCount("retrying", 100, NOW, "b.00000001", NOW + timedelta(seconds=90)),)
    [reason] = reasons(BatchView(make_snapshot(), waits, fleet=FLEET))
    assert reason == "100 wait for a retry; the first is due in 1 min 30 s, at 00:11:30.000 UTC."


def test_escape_sequences_in_foreign_reasons_take_no_effect() -> None:
    """An escape sequence in a reason is printed as text."""
    [reason] = reasons(BatchView(make_snapshot(state="paused", reason="\x1b[2J budget")))
    assert "\x1b" not in reason


def shown(*snapshots: BatchSnapshot, terminal: bool = False) -> str:
    out = StringIO()
    with ProgressDisplay(Console(file=out, width=120, force_terminal=terminal)) as display:
        for snapshot in snapshots:
            display.show(snapshot, FLEET)
    return out.getvalue()


def test_plain_progress_is_a_line_every_ten_seconds() -> None:
    """A line is printed every ten seconds and at a change of status, not for every snapshot."""
    every_second = [
        make_snapshot(now=NOW + timedelta(seconds=at), completed=at, passed=at) for at in range(21)
    ]
    lines = shown(
        *every_second, make_snapshot(state="paused", now=NOW + timedelta(seconds=21))
    ).splitlines()
    assert len(lines) == 4
    assert lines[1].split(" · ") == [
        "running 10 of 100 (10.0%)", "1.0/s", "1 min 30 s to go", "100.0% passed so far",
        "1 executor (one), 2/4 slots busy",
    ]  # fmt: skip
    assert lines[3].startswith("paused 0 of 100")


def test_dead_letters_are_not_progress() -> None:
    """A batch of dead letters only is at 0 %, in its text and in its bar."""
    output = shown(make_snapshot(failed=60, timed_out=40), terminal=True)
    assert "running 0 of 100 (0.0%), 100 dead letters" in STYLE.sub("", output)
    assert "━" not in output
    assert "x" * 8 in output


def test_an_empty_batch_is_shown_without_an_error() -> None:
    """A batch of no evaluations is shown with and without a terminal."""
    assert shown(make_snapshot(total=0)).startswith("running 0 of 0")
    assert "running 0 of 0" in shown(make_snapshot(total=0), terminal=True)


@pytest.mark.parametrize(
    ("status", "error", "closing", "text"),
    [
        ("failed", '{"kind": "permanent", "message": "no"}', None, "permanent: no"),
        ("failed", None, None, "failed"),
        (
            "timed_out",
            None,
            '{"limit": "batch", "seconds": 60}',
            "timed_out: the batch limit of 60 s passed",
        ),
        ("cancelled", None, '{"by": "me", "reason": "enough"}', "cancelled: by me: enough"),
        ("completed", None, None, "None"),
    ],
)
def test_the_fault_is_read_from_the_scorecard_or_the_closing_event(
    status: str, error: str | None, closing: str | None, text: str
) -> None:
    """The fault of an ended evaluation has a kind and a message; a completed one has none."""
    assert str(why_ended(status, error, closing)) == text
