"""The states of an evaluation: `evolve` applies the next event, and refuses every other."""

from functools import reduce
from typing import Any

import pytest

from eventlog import payloads as p
from eventlog import states
from eventlog.events import Event
from eventlog.lifecycle import IllegalTransition, Phase
from tests.builders import CASE, PAYLOADS, event, history


def replayed(events: list[Event]) -> states.State:
    """Fold events into a state."""
    unopened: states.State = states.UnopenedState()
    return reduce(states.evolve, events, unopened)


@pytest.mark.parametrize("sequence", [0, 1, 3])
def test_evolve_accepts_only_the_next_sequence(sequence):
    """Duplicates and gaps raise `OutOfOrder`: readers deduplicate and reorder before they call `evolve`."""
    with pytest.raises(states.OutOfOrder):
        states.evolve(replayed(history("queued provisioning")), event("running", sequence=sequence))


def test_a_state_carries_the_data_of_its_events():
    """A responded state has the claim, the answer and the scores; a queued one only its opening."""
    match replayed(history("queued provisioning running responded scored scored")):
        case states.RespondedState(attempt=1, sequence=5, claim=claim, answer=answer, scores=scores):
            assert claim == PAYLOADS["provisioning"]
            assert answer == PAYLOADS["responded"]
            assert scores == (PAYLOADS["scored"],) * 2
        case other:
            pytest.fail(f"not responded: {other}")
    assert replayed(history("queued")) == states.QueuedState(1, 0, p.Queued(case=CASE))
    assert replayed(history("cancelled")) == states.CancelledState(1, 0, "operator")


def test_an_event_out_of_order_names_both_places():
    """The error has the event's attempt and sequence, and those of the state it does not follow."""
    with pytest.raises(states.OutOfOrder, match=r"\(1, 3\) does not follow \(1, 1\)"):
        replayed([*history("queued provisioning"), event("completed", sequence=3)])


def test_an_illegal_event_leaves_its_phase_in_the_error():
    """The next sequence is not enough: the phase must accept the type."""
    with pytest.raises(IllegalTransition) as refusal:
        replayed(history("queued provisioning completed"))
    assert refusal.value.phase == Phase.PROVISIONING


def test_a_new_attempt_keeps_nothing_of_the_last_one():
    """The claim, the answer and the error belong to their attempt."""
    lost = [*history("queued provisioning running responded"), event("queued:lost", attempt=2)]
    assert replayed(lost) == states.QueuedState(2, 0, p.Queued(case=CASE, reason=p.OpeningReason.LOST))


@pytest.mark.parametrize("ending", ["retrying", "failed", "timed_out", "completed"])
def test_the_state_after_an_ending_has_its_data(ending):
    """An error, a limit or a result is read from the state without the events."""
    state = replayed(history(f"queued provisioning running {ending}"))
    assert states.phase_of(state) == Phase(ending)
    data: Any = PAYLOADS[ending]
    match state:
        case states.RetryingState(error=error, retry_at=retry_at):
            assert (error, retry_at) == (data.error, data.retry_at)
        case states.FailedState(error=error):
            assert error == data.error
        case states.TimedOutState(limit=limit):
            assert limit == data.limit
        case states.CompletedState(result=result):
            assert result == data
        case other:
            pytest.fail(f"no ending: {other}")
