"""Decisions on the next attempt, taken with the row locked: the locked row decides."""

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
    """Decide on a row in this phase."""
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
def test_each_decision_applies_only_to_its_phases(
    decide: Decide,
    opens_settled: bool,
    phase: Phase,
) -> None:
    """Final stays final, an ended evaluation is not ended again, a running one is not reopened."""
    may_open = phase in SETTLED if opens_settled else phase not in ENDED
    assert (decided(decide, phase) is not None) is may_open


def test_a_decision_on_an_outdated_attempt_changes_nothing() -> None:
    """The compare-and-set fails if another coordinator has opened a higher attempt."""
    assert decided(TRY_AGAIN, Phase.RUNNING, attempt=2) is None


def test_an_opening_has_the_epoch_of_its_shard() -> None:
    """The event and the row have the same epoch."""
    opening = decided(TRY_AGAIN, Phase.RUNNING)
    assert opening is not None
    [event] = opening.events
    assert isinstance(event.data, p.Queued)
    assert opening.epoch == event.data.epoch == f"epoch of {EVALUATION}"
    assert event.data.reason is p.OpeningReason.LOST


def test_an_ending_is_an_attempt_of_one_event() -> None:
    """The ending itself opens the attempt."""
    opening = decided(END, Phase.QUEUED)
    assert opening is not None
    assert [event.data for event in opening.events] == [ENDING]
    assert opening.events[0].key == (2, 0)


def test_giving_up_records_the_error() -> None:
    """The next attempt opens and fails with the evaluation's own error."""
    opening = decided(GIVE_UP, Phase.QUEUED)
    assert opening is not None
    assert opening.events[1].data == p.Failed(error=FAULT)


def test_an_evaluation_that_waits_for_its_group_gets_no_epoch() -> None:
    """It is reopened, and not published before its predecessors have ended."""
    waiting = decided(decisions.reopen(factory, retries=3, waiting={EVALUATION}), Phase.FAILED)
    at_once = decided(REOPEN, Phase.FAILED)
    assert waiting is not None
    assert at_once is not None
    assert (waiting.epoch, at_once.epoch) == ("", f"epoch of {EVALUATION}")
