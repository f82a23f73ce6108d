"""The lifecycle of an evaluation as a specification: given a history, when a command, then an event.

Read it from top to bottom. The first part follows evaluations from `queued` to their end. The second
part checks every (state, event) pair against tables written out by hand.

An evaluation is tried in numbered attempts. Sequence 0 opens an attempt and is written by the coordinator;
the executor that owns the attempt appends the sequences after it, until a closing event ends the attempt.
`decide` returns the event that a command leads to; `evolve` applies an event to a state. Both are pure, and
both raise `IllegalTransition` for a pair that is not in the lifecycle tables.
"""

from dataclasses import dataclass
from itertools import product

import pytest

from eventlog import lifecycle as life
from eventlog import states
from eventlog.events import EVENT_CLASSES, Event
from eventlog.lifecycle import (
    AttemptPosition,
    Command,
    Decision,
    OpenAttempt,
    Phase,
    RecordProgress,
    decide,
)
from tests.builders import PAYLOADS, event, history, payload


@dataclass
class given:  # noqa: N801 - reads as the first word of a sentence
    """A history, written as the words of its events in order, such as `queued provisioning`."""

    words: str = ""
    attempt: int = 1

    @property
    def state(self) -> states.State:
        return replayed(history(self.words, attempt=self.attempt))

    def when(self, command: Command) -> "CommandOnState":
        return CommandOnState(self.state, command)


@dataclass
class CommandOnState:
    """A command for an evaluation in a state, and the two outcomes that it can have."""

    state: states.State
    command: Command

    def then(self, word: str, *, attempt: int, sequence: int) -> None:
        """`decide` returns this event, and `evolve` accepts it."""
        decision = decide(position_of(self.state), self.command)
        assert (decision.after.attempt, decision.after.sequence) == (attempt, sequence)
        assert decision.payload == payload(word)
        following = states.evolve(self.state, event(decision.payload, attempt=attempt, sequence=sequence))
        assert (following.attempt, following.sequence) == (attempt, sequence)

    def is_refused(self) -> None:
        """`decide` raises an error that carries the state which refused the command."""
        with pytest.raises(life.IllegalTransition) as refusal:
            decide(position_of(self.state), self.command)
        assert refusal.value.phase == states.phase_of(self.state)


def replayed(events: list[Event], state: states.State | None = None) -> states.State:
    """Fold events into a state, one at a time."""
    state = state or states.UnopenedState()
    for each in events:
        state = states.evolve(state, each)
    return state


def position_of(state: states.State) -> AttemptPosition:
    """Return the phase, attempt and sequence of a state, which is all that `decide` needs."""
    return AttemptPosition(states.phase_of(state), state.attempt, state.sequence)


def record(word: str) -> RecordProgress:
    """Make the command of an executor: append this event to the attempt it owns."""
    return RecordProgress(payload(word))  # type: ignore[arg-type]  # events that are no progress must be refused


def open_with(word: str) -> OpenAttempt:
    """Make the command of the coordinator: open the next attempt with this event."""
    return OpenAttempt(payload(word))  # type: ignore[arg-type]  # events that are no openings must be refused


# Part one: evaluations from `queued` to their end.


def test_an_evaluation_begins_with_queued():
    """The first event of an evaluation is sequence 0 of attempt 1."""
    given().when(open_with("queued")).then("queued", attempt=1, sequence=0)


def test_an_unopened_evaluation_accepts_no_progress():
    """An executor cannot record progress before the coordinator has opened an attempt."""
    given().when(record("provisioning")).is_refused()


def test_an_executor_claims_runs_and_completes_an_attempt():
    """Without faults an attempt is queued, provisioning (claimed by an executor), running, completed."""
    given("queued").when(record("provisioning")).then("provisioning", attempt=1, sequence=1)
    given("queued provisioning").when(record("running")).then("running", attempt=1, sequence=2)
    given("queued provisioning running").when(record("completed")).then("completed", attempt=1, sequence=3)


def test_an_answer_is_recorded_before_its_scores():
    """`scored` follows `responded`, once for each evaluator, and `completed` follows the scores."""
    given("queued provisioning running").when(record("scored")).is_refused()
    answered = "queued provisioning running responded"
    given(answered).when(record("scored")).then("scored", attempt=1, sequence=4)
    given(f"{answered} scored scored").when(record("scored")).then("scored", attempt=1, sequence=6)
    given(f"{answered} scored scored").when(record("completed")).then("completed", attempt=1, sequence=6)


def test_an_attempt_cannot_complete_before_it_runs():
    """`provisioning → completed` is refused: it would hide a lost `running` event."""
    given("queued provisioning").when(record("completed")).is_refused()


def test_an_attempt_can_fail_before_it_is_claimed():
    """A case with invalid input fails directly from `queued`."""
    given("queued").when(record("failed")).then("failed", attempt=1, sequence=1)


def test_a_transient_fault_closes_the_attempt_but_not_the_evaluation():
    """After `retrying` the executor can append nothing more, and the coordinator opens the next attempt."""
    retrying = given("queued provisioning running retrying")
    retrying.when(record("running")).is_refused()
    retrying.when(open_with("queued:retry")).then("queued:retry", attempt=2, sequence=0)


def test_a_higher_attempt_replaces_one_whose_executor_is_lost():
    """The coordinator may open the next attempt while the current one is still open."""
    given("queued provisioning running").when(open_with("queued:lost")).then(
        "queued:lost", attempt=2, sequence=0
    )


@pytest.mark.parametrize("settled", ["failed", "timed_out"])
def test_a_settled_evaluation_is_reopened_only_by_an_operator(settled):
    """After `failed` or `timed_out` only an operator opens an attempt; a cancel is refused."""
    dead_letter = given(f"queued provisioning running {settled}")
    for opening in ("queued", "queued:retry", "queued:lost", "queued:scoring", "cancelled", "timed_out"):
        dead_letter.when(open_with(opening)).is_refused()
    dead_letter.when(open_with("queued:operator")).then("queued:operator", attempt=2, sequence=0)


@pytest.mark.parametrize("final", ["queued provisioning running completed", "cancelled"])
@pytest.mark.parametrize("opening", ["queued", "queued:operator", "cancelled", "timed_out"])
def test_a_final_evaluation_is_never_reopened(final, opening):
    """After `completed` or `cancelled` every opening is refused, an operator's too."""
    given(final).when(open_with(opening)).is_refused()


@pytest.mark.parametrize("ending", ["cancelled", "timed_out"])
def test_the_coordinator_can_end_an_evaluation_in_any_open_state(ending):
    """A cancel or time-out from outside is an attempt whose opening is also its closing event."""
    for words in ("queued", "queued provisioning", "queued provisioning running responded"):
        given(words).when(open_with(ending)).then(ending, attempt=2, sequence=0)


def test_attempt_numbers_may_skip_but_never_decrease():
    """Any higher attempt can open; an event of a lower attempt is out of order."""
    state = replayed(history("queued provisioning"))
    assert states.evolve(state, event("queued:lost", attempt=5)).attempt == 5
    with pytest.raises(states.OutOfOrder) as error:
        states.evolve(replayed(history("queued", attempt=2)), event("provisioning", sequence=1))
    assert error.value.event.key == (1, 1)


# Part two: every (state, event) pair. These tables are written by hand and share nothing with those of
# `eventlog.lifecycle`, so an error in either is a failed test.

ACCEPTS_IN_THE_SAME_ATTEMPT = {
    "unopened": "",
    "queued": "provisioning failed",
    "provisioning": "running retrying failed timed_out",
    "running": "responded completed retrying failed timed_out",
    "responded": "scored completed retrying failed timed_out",
    "retrying": "",
    "failed": "",
    "timed_out": "",
    "completed": "",
    "cancelled": "",
}
OPENS_A_HIGHER_ATTEMPT = {
    "unopened": "queued queued:operator cancelled timed_out",
    "queued": "queued queued:operator cancelled timed_out",
    "provisioning": "queued queued:operator cancelled timed_out",
    "running": "queued queued:operator cancelled timed_out",
    "responded": "queued queued:operator cancelled timed_out",
    "retrying": "queued queued:operator cancelled timed_out",
    "failed": "queued:operator",
    "timed_out": "queued:operator",
    "completed": "",
    "cancelled": "",
}
REACHED_BY = {
    "unopened": "",
    "queued": "queued",
    "provisioning": "queued provisioning",
    "running": "queued provisioning running",
    "responded": "queued provisioning running responded",
    "retrying": "queued provisioning retrying",
    "failed": "queued failed",
    "timed_out": "queued provisioning timed_out",
    "completed": "queued provisioning running completed",
    "cancelled": "cancelled",
}
EVENT_TYPES = list(EVENT_CLASSES)
EVERY_OPENING = [*EVENT_TYPES, "queued:operator"]


def leads_to(phase: str, word: str) -> str:
    """Return the next phase: an event leads to the phase of its name, except `scored`, which keeps it."""
    return phase if word == "scored" else word.partition(":")[0]


def test_the_tables_cover_every_phase_and_event_type():
    """A new phase or event type must be added to the tables above."""
    phases = {phase.value for phase in Phase}
    assert set(ACCEPTS_IN_THE_SAME_ATTEMPT) == set(OPENS_A_HIGHER_ATTEMPT) == set(REACHED_BY) == phases
    assert set(EVENT_TYPES) == set(PAYLOADS)


@pytest.mark.parametrize(("phase", "event_type"), list(product(REACHED_BY, EVENT_TYPES)))
def test_an_attempt_accepts_exactly_the_events_of_the_table(phase, event_type):
    """`advance`, `evolve` and `decide` agree with the table for every event within an attempt."""
    state = given(REACHED_BY[phase]).state
    assert states.phase_of(state) == phase
    following = event(event_type, attempt=max(state.attempt, 1), sequence=state.sequence + 1)
    if event_type in ACCEPTS_IN_THE_SAME_ATTEMPT[phase].split():
        expected = leads_to(phase, event_type)
        assert life.advance(Phase(phase), event_type, sequence=following.sequence) == expected
        assert states.phase_of(states.evolve(state, following)) == expected
        after = AttemptPosition(Phase(expected), *following.key)
        assert decide(position_of(state), record(event_type)) == Decision(after, following.data)
    else:
        with pytest.raises(life.IllegalTransition):
            life.advance(Phase(phase), event_type, sequence=following.sequence)
        with pytest.raises(life.IllegalTransition):
            decide(position_of(state), record(event_type))
        if phase != "unopened":  # there the next event is an opening: see the next test
            with pytest.raises(life.IllegalTransition):
                states.evolve(state, following)


@pytest.mark.parametrize(("phase", "word"), list(product(REACHED_BY, EVERY_OPENING)))
def test_a_higher_attempt_opens_exactly_where_the_table_allows(phase, word):
    """`reopen`, `evolve` and `decide` agree with the table for every opening."""
    state = given(REACHED_BY[phase]).state
    opening = event(word, attempt=state.attempt + 1)
    if word in OPENS_A_HIGHER_ATTEMPT[phase].split():
        expected = leads_to(phase, word)
        assert life.reopen(Phase(phase), opening.data, sequence=0) == expected
        assert states.phase_of(states.evolve(state, opening)) == expected
        after = AttemptPosition(Phase(expected), *opening.key)
        assert decide(position_of(state), open_with(word)) == Decision(after, opening.data)
    else:
        with pytest.raises(life.IllegalTransition):
            life.reopen(Phase(phase), opening.data, sequence=0)
        with pytest.raises(life.IllegalTransition):
            states.evolve(state, opening)


@pytest.mark.parametrize(("phase", "word"), list(product(REACHED_BY, EVERY_OPENING)))
def test_only_sequence_0_opens_an_attempt(phase, word):
    """The first event of a higher attempt is refused at any other sequence, whatever its type."""
    state = given(REACHED_BY[phase]).state
    late = event(word, attempt=state.attempt + 1, sequence=1)
    with pytest.raises(life.IllegalTransition):
        life.reopen(Phase(phase), late.data, sequence=late.sequence)
    with pytest.raises(states.OutOfOrder):
        states.evolve(state, late)


def test_final_settled_and_closed_name_these_phases():
    """`FINAL`, `SETTLED` and `CLOSED` hold exactly the phases that the glossary defines them by."""
    assert {"completed", "cancelled"} == life.FINAL
    assert {"failed", "timed_out"} == life.SETTLED
    assert (
        {"completed", "retrying", "failed", "timed_out", "cancelled"} == life.CLOSED == life.CLOSING_TYPES
    )
