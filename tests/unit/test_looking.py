"""One look at a stream: who owns the attempt, what is missing, and whether it knows more than the row."""

from datetime import date, timedelta

import pytest

from coordinator.looking import Look, look
from coordinator.reconcile import Owner, Told
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


def seen(stream: list[RawEntry], cursor: Cursor = QUEUED, *, told: str = "now") -> Look:
    """Look at a stream, with the row as given."""
    row = EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), cursor)
    return look(EvaluationState(row, told, published=True), stream, epoch="now")


def owner(one: Look, *, live: tuple[str, ...] = ("executor-1",), after: float = 0.0) -> Owner:
    """Say who owns the attempt, so many seconds after the claim."""
    sight = one.sight(
        live,
        now_ms=CLAIMED_AT + int(after * 1000),
        allowed=ALLOWED,
        is_settled=True,
        is_drained=False,
    )
    return sight.owner


def test_nothing_in_the_stream_is_nothing_known() -> None:
    """No opening, no owner, no news."""
    one = seen([])
    assert (one.has_opening, one.is_ahead, owner(one)) == (False, False, Owner.NOBODY)


@pytest.mark.parametrize(("told", "known"), [("", Told.NEVER), ("then", Told.BEFORE), ("now", Told.NOW)])
def test_the_epoch_of_the_row_is_compared_with_that_of_now(told: str, known: Told) -> None:
    """Whoever was told before Redis was lost may know nothing any more."""
    assert seen([], told=told).told is known


def test_the_first_claim_is_the_claim() -> None:
    """A second one lost, whoever it was."""
    late = event(p.Provisioning(executor="executor-2", nonce="n"), sequence=1)
    one = seen([*wire(history("queued provisioning")), raw_entry(late, entry_id=b"1800000000000-0")])
    assert (one.claimed_by, one.claimed_at_ms) == ("executor-1", CLAIMED_AT)


@pytest.mark.parametrize(
    ("live", "after", "who"),
    [
        (("executor-1",), 0.0, Owner.AT_WORK),
        (("executor-1",), 60.0, Owner.AT_WORK),
        (("executor-1",), 60.001, Owner.GONE),
        (("executor-2",), 0.0, Owner.GONE),
        ((), 0.0, Owner.GONE),
    ],
)
def test_an_owner_is_at_work_while_it_lives_and_is_within_its_time(
    live: tuple[str, ...], after: float, who: Owner
) -> None:
    """Dead or hung is gone."""
    assert owner(seen(wire(history("queued provisioning running"))), live=live, after=after) is who


def test_only_the_newest_attempt_counts() -> None:
    """An earlier one's claim and opening are of the past."""
    one = seen(wire(history("queued provisioning retrying")), Cursor(2, 0, Phase.QUEUED))
    assert (one.has_opening, one.claimed_by, one.is_ahead) == (False, None, False)


@pytest.mark.parametrize("closing", ["completed", "retrying", "failed", "timed_out"])
def test_an_end_that_the_row_does_not_know_is_news(closing: str) -> None:
    """The storage worker has the next word, even across a gap."""
    stream = wire(history(f"queued provisioning running {closing}"))
    assert seen(stream, Cursor(1, 2, Phase.RUNNING)).is_ahead
    assert seen([stream[0], stream[3]]).is_ahead
    assert not seen(stream, Cursor(1, 3, Phase(closing))).is_ahead


def test_progress_is_no_news() -> None:
    """An owner that died in the middle has still died."""
    assert not seen(wire(history("queued provisioning running responded scored"))).is_ahead


def test_a_higher_attempt_is_news() -> None:
    """Somebody has opened it since the row was read."""
    assert seen(wire(history("queued:lost", attempt=2))).is_ahead


def test_a_tail_that_was_put_back_has_an_owner_and_no_opening() -> None:
    """Redis was lost: the coordinator's event is gone, the owner's are here."""
    one = seen(wire(history("provisioning running", first=1)), Cursor(1, 2, Phase.RUNNING))
    assert (one.has_opening, owner(one)) == (False, Owner.AT_WORK)


def test_what_can_not_be_read_is_passed_over() -> None:
    """Garbage does not hide the claim behind it."""
    good = wire(history("queued provisioning"))
    bad = raw_entry(history("queued provisioning")[1], event=b"garbage")
    assert seen([good[0], bad, good[1]]).claimed_by == "executor-1"


def test_the_row_has_its_say() -> None:
    """Phase and owner in Postgres are seen with the rest."""
    row = EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), Cursor(1, 2, Phase.RUNNING), "executor-1")
    one = look(EvaluationState(row, "now", published=True), [], epoch="now")
    sight = one.sight((), now_ms=0, allowed=ALLOWED, is_settled=False, is_drained=True)
    assert (sight.phase, sight.claimed_in_row, sight.is_settled, sight.is_drained) == (
        Phase.RUNNING, True, False, True,
    )  # fmt: skip
