"""How a batch stands, and why it does not go on: pure words about snapshots."""

import re
from dataclasses import replace
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from rich.console import Console

from projections.queries.batches import BatchSnapshot, WaitingCount
from scoreline.reports.batch_poller import BatchPoller
from scoreline.reports.batch_status import ExitCode, document, exit_code, is_over, status_word
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
CREW = FleetStatus((ExecutorInstance("i-1", "one", slots=4, busy=2),))


def standing(**changes: Any) -> BatchSnapshot:
    return replace(RUNNING, **changes)


def abandoned(**changes: Any) -> BatchView:
    """A look at the batch of a local run of which nothing is alive."""
    return BatchView(standing(**{"run_id": "r", **changes}), fleet=FleetStatus(), leaderless=True)


class Scripted(BatchPoller):
    """A poller that sees given looks."""

    def __init__(self, views: list[BatchView]) -> None:
        self.views = iter(views)
        self._conn, self._abandoned = None, None

    async def pause(self, _: float) -> None:
        """Wait for nothing."""

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
def test_word_end_and_exit_code(changes: dict[str, Any], word: str, over: bool, code: ExitCode) -> None:
    """One snapshot, one word, one exit code."""
    snapshot = standing(**changes)
    assert (status_word(snapshot), is_over(snapshot), exit_code(snapshot)) == (word, over, code)


def test_duration_ends_with_the_batch() -> None:
    """Until then it grows."""
    assert document(standing())["duration_s"] == 600.0
    assert document(standing(finished_at=START + timedelta(seconds=5)))["duration_s"] == 5.0


def test_batch_that_goes_well_has_no_reasons() -> None:
    """Nobody is told of troubles that are none."""
    waits = (WaitingCount("running", 100, NOW, "b.00000001"),)
    assert reasons(BatchView(standing(), waits, fleet=CREW)) == []
    assert reasons(BatchView(standing(state="completed", finished_at=NOW))) == []


def test_all_done_and_not_closed_wants_a_coordinator() -> None:
    """No executor is missed where nothing is left to do."""
    [said] = reasons(BatchView(standing(completed=100)))
    assert "a coordinator has yet to close it" in said


def test_an_abandoned_local_run_has_one_suggestion() -> None:
    """No coordinator is recommended, which would not serve it: only the command that goes on with it."""
    for ended in (0, 40, 100):
        [said] = reasons(abandoned(completed=ended))
        assert said.startswith("Nothing works on it: the command that ran it has ended")
        assert said.endswith("To go on: scoreline batch resume b")


@pytest.mark.parametrize(
    "view",
    [
        BatchView(
            standing(run_id="r", now=START + timedelta(seconds=14)), fleet=FleetStatus(), leaderless=True
        ),
        BatchView(standing(run_id="r"), fleet=FleetStatus()),
        BatchView(
            standing(run_id="r"),
            fleet=FleetStatus((ExecutorInstance("i-1", "one", run_id="r"),)),
            leaderless=True,
        ),
        BatchView(standing(run_id="r"), fleet=FleetStatus(unavailable="Redis is away."), leaderless=True),
        BatchView(standing(), fleet=FleetStatus(), leaderless=True),
    ],
    ids=["starting", "led", "with an executor", "redis away", "of the fleet"],
)
def test_a_run_is_abandoned_only_if_nothing_of_it_is_alive(view: BatchView) -> None:
    """What starts, leads, executes or is not known to be gone counts as alive."""
    assert not view.is_abandoned
    assert not any("batch resume" in said for said in reasons(view) if view.snapshot.run_id)


async def test_watching_ends_when_its_local_run_is_gone() -> None:
    """Fifteen seconds after the last run was seen to be gone; a run that starts meanwhile counts anew."""
    at = [(0, "r"), (14, "r"), (16, "s"), (30, "s"), (31, "s")]
    views = [abandoned(run_id=run_id, now=NOW + timedelta(seconds=second)) for second, run_id in at]
    last = await Scripted(views).until_over(lambda _: None)
    assert last is views[-1]


def test_work_in_hand_is_looked_at_before_the_queue() -> None:
    """What is queued waits for its turn, however long; what somebody holds should move."""
    waits = (
        WaitingCount("queued", 90, START, "b.00000010"),
        WaitingCount("running", 10, START + timedelta(minutes=5), "b.00000003"),
    )
    [said] = reasons(BatchView(standing(), waits, fleet=CREW))
    assert said.startswith("Unmoved for longest: b.00000003, running for 5 min 0 s.")


def test_retries_say_when_they_are_due() -> None:
    """Told from stuck: the first is due in so long."""
    waits = (WaitingCount("retrying", 100, NOW, "b.00000001", NOW + timedelta(seconds=90)),)
    [said] = reasons(BatchView(standing(), waits, fleet=CREW))
    assert said == "100 wait to be tried again; the first is due in 1 min 30 s, at 00:11:30.000 UTC."


def test_foreign_reasons_are_shown_and_not_obeyed() -> None:
    """A reason with an escape sequence in it comes out as text."""
    [said] = reasons(BatchView(standing(state="paused", reason="\x1b[2J budget")))
    assert "\x1b" not in said


def shown(*snapshots: BatchSnapshot, terminal: bool = False) -> str:
    out = StringIO()
    with ProgressDisplay(Console(file=out, width=120, force_terminal=terminal)) as display:
        for snapshot in snapshots:
            display.show(snapshot, CREW)
    return out.getvalue()


def test_plain_progress_is_a_line_now_and_then() -> None:
    """Every ten seconds, and at every change of status; not at every look."""
    every_second = [standing(now=NOW + timedelta(seconds=at), completed=at, passed=at) for at in range(21)]
    lines = shown(*every_second, standing(state="paused", now=NOW + timedelta(seconds=21))).splitlines()
    assert len(lines) == 4
    assert lines[1].split(" · ") == [
        "running 10 of 100 (10.0%)", "1.0/s", "1 min 30 s to go", "100.0% passed so far",
        "1 executor (one), 2/4 slots busy",
    ]  # fmt: skip
    assert lines[3].startswith("paused 0 of 100")


def test_dead_letters_are_not_progress() -> None:
    """A batch of which everything failed is at 0 %, in words and in its bar."""
    said = shown(standing(failed=60, timed_out=40), terminal=True)
    assert "running 0 of 100 (0.0%), 100 dead letters" in STYLE.sub("", said)
    assert "━" not in said
    assert "x" * 8 in said


def test_empty_batch_is_no_division_by_zero() -> None:
    """On a terminal, and without one."""
    assert shown(standing(total=0)).startswith("running 0 of 0")
    assert "running 0 of 0" in shown(standing(total=0), terminal=True)


@pytest.mark.parametrize(
    ("status", "error", "closing", "said"),
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
def test_why_an_evaluation_ended(status: str, error: str | None, closing: str | None, said: str) -> None:
    """From the scorecard, or from the event that ended it."""
    assert str(why_ended(status, error, closing)) == said
