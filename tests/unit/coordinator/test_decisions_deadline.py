"""The end of a batch's time limit."""

from datetime import date

import pytest

from coordinator import decisions
from coordinator.attempts import AttemptFactory
from eventlog import payloads as p
from eventlog.lifecycle import ENDED, Phase
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow
from projections.ledger.contract import EvaluationState
from tests.builders import BATCH, EVALUATION, START, history


@pytest.mark.parametrize("phase", Phase)
def test_the_end_of_a_batchs_time_gives_the_unprocessed_timeouts_and_leaves_the_rest(phase: Phase):
    """Every evaluation that has not ended gets a time-out of its own; what has ended stays as it is."""
    ending = p.TimedOut(limit="batch", seconds=60.0)
    decide = decisions.end(lambda _: AttemptFactory("coordinator", START, "epoch"), ending)
    row = EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), Cursor(1, 2, phase))
    logged = {event.key: event for event in history("queued provisioning running")}
    opening = decide(EvaluationState(row, "epoch", published=True), logged)
    recorded = [each.data for each in opening.events] if opening else []
    assert recorded == ([] if phase in ENDED else [ending])
