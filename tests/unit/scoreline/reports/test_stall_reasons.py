"""Why a batch makes no progress, and the command that helps."""

from datetime import timedelta

from projections.queries.batches import WaitingCount
from scoreline.reports.batch_view import BatchView
from scoreline.reports.stall_reasons import reasons
from tests.builders import START
from tests.unit.scoreline.reports.snapshots import FLEET, NOW, abandoned, make_snapshot


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
