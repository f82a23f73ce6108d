"""What is opened, decided with the row locked: whatever has changed since, the row has the last word."""

from datetime import date

import pytest

from coordinator import decisions
from coordinator.attempts import AttemptFactory, Logged
from eventlog import payloads as p
from eventlog.lifecycle import ENDED, SETTLED, Phase
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow
from projections.ledger.contract import AttemptOpening, Decide, EvaluationState
from tests.builders import BATCH, EVALUATION, START, history

ENDING = p.Cancelled(by="operator")
FAULT = p.ErrorDetail(kind="dependency", message="needs another")
KNOWN: Logged = {event.key: event for event in history("queued provisioning running")}


def factory(evaluation_id: str) -> AttemptFactory:
    return AttemptFactory("coordinator", START, f"epoch of {evaluation_id}")


def decided(decide: Decide, phase: Phase, *, attempt: int = 1) -> AttemptOpening | None:
    """Decide about a row in this phase."""
    row = EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), Cursor(attempt, 2, phase))
    return decide(EvaluationState(row, "epoch", published=True), KNOWN)


TRY_AGAIN = decisions.try_again(factory, {EVALUATION: 1}, reason=p.OpeningReason.LOST, retries=3)
REOPEN = decisions.reopen(factory, retries=3)
END = decisions.end(factory, ENDING)
GIVE_UP = decisions.give_up(factory, {EVALUATION: FAULT})


@pytest.mark.parametrize("phase", Phase)
@pytest.mark.parametrize(
    ("decide", "opens_settled"), [(TRY_AGAIN, False), (REOPEN, True), (END, False), (GIVE_UP, False)]
)
def test_only_an_operator_opens_what_is_settled_and_nothing_else(
    decide: Decide,
    opens_settled: bool,
    phase: Phase,
) -> None:
    """Final is final; what has ended is not ended again; what is under way is not reopened."""
    may_open = phase in SETTLED if opens_settled else phase not in ENDED
    assert (decided(decide, phase) is not None) is may_open


def test_an_attempt_that_is_no_longer_the_newest_is_left_alone() -> None:
    """Somebody else was first."""
    assert decided(TRY_AGAIN, Phase.RUNNING, attempt=2) is None


def test_an_opening_is_meant_for_the_epoch_of_its_shard() -> None:
    """The event and the row say the same."""
    opening = decided(TRY_AGAIN, Phase.RUNNING)
    assert opening is not None
    [event] = opening.events
    assert isinstance(event.data, p.Queued)
    assert opening.epoch == event.data.epoch == f"epoch of {EVALUATION}"
    assert event.data.reason is p.OpeningReason.LOST


def test_an_ending_opens_and_ends_at_once() -> None:
    """One event, the ending itself."""
    opening = decided(END, Phase.QUEUED)
    assert opening is not None
    assert [event.data for event in opening.events] == [ENDING]
    assert opening.events[0].key == (2, 0)


def test_giving_up_says_why() -> None:
    """Opened, and failed for its own reason."""
    opening = decided(GIVE_UP, Phase.QUEUED)
    assert opening is not None
    assert opening.events[1].data == p.Failed(error=FAULT)


def test_those_who_wait_for_their_group_get_no_epoch() -> None:
    """Reopened, and nobody is told before their turn has come."""
    waiting = decided(decisions.reopen(factory, retries=3, waiting={EVALUATION}), Phase.FAILED)
    at_once = decided(REOPEN, Phase.FAILED)
    assert waiting is not None
    assert at_once is not None
    assert (waiting.epoch, at_once.epoch) == ("", f"epoch of {EVALUATION}")
