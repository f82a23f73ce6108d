"""Inspection of a stream: owner of the attempt, missing opening, events that the row has not applied."""

from datetime import date, timedelta

import pytest

from coordinator.reconcile_decision import Owner, Published
from coordinator.stream_inspection import StreamInspection, inspect_stream
from eventlog import payloads as p
from eventlog.codec import RawEntry
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow
from projections.ledger.contract import EvaluationState
from tests.builders import BATCH, EVALUATION, FIRST_ARRIVAL_MS, event, history, raw_entry, wire

ALLOWED = timedelta(seconds=60)
QUEUED = Cursor(1, 0, Phase.QUEUED)
CLAIMED_AT = FIRST_ARRIVAL_MS + 1


def inspect(stream: list[RawEntry], cursor: Cursor = QUEUED, *, epoch: str = "now") -> StreamInspection:
    """Inspect a stream, with the row as given."""
    row = EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), cursor)
    return inspect_stream(EvaluationState(row, epoch, published=True), stream, epoch="now")


def owner(one: StreamInspection, *, live: tuple[str, ...] = ("executor-1",), after: float = 0.0) -> Owner:
    """Return the state of the owner, some seconds after the claim."""
    view = one.view(
        live,
        now_ms=CLAIMED_AT + int(after * 1000),
        allowed=ALLOWED,
        is_settled=True,
        is_drained=False,
    )
    return view.owner


def test_an_empty_stream_has_no_facts() -> None:
    """No opening, no owner, nothing unapplied."""
    one = inspect([])
    assert (one.has_opening, one.is_ahead, owner(one)) == (False, False, Owner.NONE)


@pytest.mark.parametrize(
    ("epoch", "published"),
    [("", Published.NEVER), ("then", Published.OLD_EPOCH), ("now", Published.CURRENT_EPOCH)],
)
def test_the_epoch_of_the_row_is_compared_with_the_current_one(epoch: str, published: Published) -> None:
    """An executor that received the task before Redis lost its data may have lost it, too."""
    assert inspect([], epoch=epoch).published is published


def test_the_first_claim_wins() -> None:
    """A second claim is ignored."""
    late = event(p.Provisioning(executor="executor-2", nonce="n"), sequence=1)
    one = inspect([*wire(history("queued provisioning")), raw_entry(late, entry_id=b"1800000000000-0")])
    assert (one.claimed_by, one.claimed_at_ms) == ("executor-1", CLAIMED_AT)


@pytest.mark.parametrize(
    ("live", "after", "state"),
    [
        (("executor-1",), 0.0, Owner.ALIVE),
        (("executor-1",), 60.0, Owner.ALIVE),
        (("executor-1",), 60.001, Owner.LOST),
        (("executor-2",), 0.0, Owner.LOST),
        ((), 0.0, Owner.LOST),
    ],
)
def test_an_owner_is_alive_while_it_heartbeats_within_the_attempt_deadline(
    live: tuple[str, ...], after: float, state: Owner
) -> None:
    """A dead or hung owner is lost."""
    assert owner(inspect(wire(history("queued provisioning running"))), live=live, after=after) is state


def test_only_the_newest_attempt_counts() -> None:
    """Claim and opening of an earlier attempt are ignored."""
    one = inspect(wire(history("queued provisioning retrying")), Cursor(2, 0, Phase.QUEUED))
    assert (one.has_opening, one.claimed_by, one.is_ahead) == (False, None, False)


@pytest.mark.parametrize("closing", ["completed", "retrying", "failed", "timed_out"])
def test_a_closing_event_that_the_row_has_not_applied_is_ahead(closing: str) -> None:
    """Even across a gap: the storage worker applies it."""
    stream = wire(history(f"queued provisioning running {closing}"))
    assert inspect(stream, Cursor(1, 2, Phase.RUNNING)).is_ahead
    assert inspect([stream[0], stream[3]]).is_ahead
    assert not inspect(stream, Cursor(1, 3, Phase(closing))).is_ahead


def test_progress_is_not_ahead() -> None:
    """An owner that died in the middle is still dead."""
    assert not inspect(wire(history("queued provisioning running responded scored"))).is_ahead


def test_a_higher_attempt_is_ahead() -> None:
    """A coordinator has opened it since the row was read."""
    assert inspect(wire(history("queued:lost", attempt=2))).is_ahead


def test_re_appended_events_have_an_owner_and_no_opening() -> None:
    """Redis lost its data: the coordinator's event is gone, the owner has re-appended its own."""
    one = inspect(wire(history("provisioning running", first=1)), Cursor(1, 2, Phase.RUNNING))
    assert (one.has_opening, owner(one)) == (False, Owner.ALIVE)


def test_an_unreadable_entry_is_skipped() -> None:
    """It does not hide the claim behind it."""
    good = wire(history("queued provisioning"))
    bad = raw_entry(history("queued provisioning")[1], event=b"garbage")
    assert inspect([good[0], bad, good[1]]).claimed_by == "executor-1"


def test_the_view_contains_phase_and_owner_of_the_row() -> None:
    """Both are those of the row in Postgres."""
    row = EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), Cursor(1, 2, Phase.RUNNING), "executor-1")
    one = inspect_stream(EvaluationState(row, "now", published=True), [], epoch="now")
    view = one.view((), now_ms=0, allowed=ALLOWED, is_settled=False, is_drained=True)
    assert (view.phase, view.claimed_in_row, view.is_settled, view.is_drained) == (
        Phase.RUNNING, True, False, True,
    )  # fmt: skip
