"""The life of an evaluation, told as a story: what has happened, what is asked, what follows."""

from dataclasses import dataclass
from itertools import product

import pytest

from eventlog import lifecycle as life
from eventlog import payloads as p
from eventlog.commands import AttemptPosition, Command, Decision, OpenAttempt, RecordProgress, decide
from eventlog.events import EVENT_CLASSES, Event
from eventlog.lifecycle import Phase
from tests.builders import CASE, PAYLOADS, event, history, payload


@dataclass
class given:  # noqa: N801 - reads as the first word of a sentence
    """A history, and what may be asked of it."""

    words: str = ""
    attempt: int = 1

    @property
    def state(self) -> life.State:
        return replayed(history(self.words, attempt=self.attempt))

    def when(self, command: Command) -> "Asked":
        return Asked(self.state, command)


@dataclass
class Asked:
    state: life.State
    command: Command

    def then(self, word: str, *, attempt: int, sequence: int) -> None:
        """The decision names this event, and `evolve` accepts what was decided."""
        decision = decide(standing(self.state), self.command)
        assert (decision.after.attempt, decision.after.sequence) == (attempt, sequence)
        assert decision.payload == payload(word)
        following = life.evolve(self.state, event(decision.payload, attempt=attempt, sequence=sequence))
        assert (following.attempt, following.sequence) == (attempt, sequence)

    def is_refused(self) -> None:
        with pytest.raises(life.IllegalTransition) as refusal:
            decide(standing(self.state), self.command)
        assert refusal.value.phase == life.phase_of(self.state)


def replayed(events: list[Event], state: life.State | None = None) -> life.State:
    state = state or life.UnopenedState()
    for each in events:
        state = life.evolve(state, each)
    return state


def standing(state: life.State) -> AttemptPosition:
    return AttemptPosition(life.phase_of(state), state.attempt, state.sequence)


def record(word: str) -> RecordProgress:
    return RecordProgress(payload(word))  # type: ignore[arg-type]  # whatever the word stands for is asked


def open_by(word: str) -> OpenAttempt:
    return OpenAttempt(payload(word))  # type: ignore[arg-type]  # as above


# The story.


def test_an_evaluation_begins_when_it_is_queued():
    """Sequence 0 of attempt 1 is the first thing that can happen."""
    given().when(open_by("queued")).then("queued", attempt=1, sequence=0)


def test_nothing_can_be_recorded_before_it_is_queued():
    """An owner cannot speak of an attempt that nobody has opened."""
    given().when(record("provisioning")).is_refused()


def test_an_executor_claims_runs_and_completes():
    """The straight way through a life, one decision at a time."""
    given("queued").when(record("provisioning")).then("provisioning", attempt=1, sequence=1)
    given("queued provisioning").when(record("running")).then("running", attempt=1, sequence=2)
    given("queued provisioning running").when(record("completed")).then("completed", attempt=1, sequence=3)


def test_an_answer_is_on_record_before_it_is_scored():
    """Scores follow the answer, as many as there are evaluators, and only then the verdict."""
    given("queued provisioning running").when(record("scored")).is_refused()
    answered = "queued provisioning running responded"
    given(answered).when(record("scored")).then("scored", attempt=1, sequence=4)
    given(f"{answered} scored scored").when(record("scored")).then("scored", attempt=1, sequence=6)
    given(f"{answered} scored scored").when(record("completed")).then("completed", attempt=1, sequence=6)


def test_provisioning_cannot_complete():
    """A verdict without a run is refused: allowing it would hide that `running` was lost."""
    given("queued provisioning").when(record("completed")).is_refused()


def test_invalid_input_fails_without_a_run():
    """A case that nobody can run fails from the queue."""
    given("queued").when(record("failed")).then("failed", attempt=1, sequence=1)


def test_a_transient_fault_closes_the_attempt_and_not_the_evaluation():
    """After `retrying` the owner is silent, and the coordinator opens the next attempt."""
    retrying = given("queued provisioning running retrying")
    retrying.when(record("running")).is_refused()
    retrying.when(open_by("queued:retry")).then("queued:retry", attempt=2, sequence=0)


def test_an_attempt_whose_executor_is_lost_is_replaced():
    """A higher attempt may open over one that is still running."""
    given("queued provisioning running").when(open_by("queued:lost")).then(
        "queued:lost", attempt=2, sequence=0
    )


@pytest.mark.parametrize("settled", ["failed", "timed_out"])
def test_settled_reopens_only_by_an_operator(settled):
    """Dead letters stay dead until a person asks; not even a cancel touches them."""
    dead_letter = given(f"queued provisioning running {settled}")
    for opening in ("queued", "queued:retry", "queued:lost", "queued:scoring", "cancelled", "timed_out"):
        dead_letter.when(open_by(opening)).is_refused()
    dead_letter.when(open_by("queued:operator")).then("queued:operator", attempt=2, sequence=0)


@pytest.mark.parametrize("life_story", ["queued provisioning running completed", "cancelled"])
@pytest.mark.parametrize("opening", ["queued", "queued:operator", "cancelled", "timed_out"])
def test_final_is_final(life_story, opening):
    """Nobody, not even an operator, reopens what is completed or cancelled."""
    given(life_story).when(open_by(opening)).is_refused()


@pytest.mark.parametrize("ending", ["cancelled", "timed_out"])
def test_an_evaluation_can_be_ended_from_outside_at_any_time_before_its_end(ending):
    """The coordinator opens an attempt that is closed at once, over any state that has not ended."""
    for words in ("queued", "queued provisioning", "queued provisioning running responded"):
        given(words).when(open_by(ending)).then(ending, attempt=2, sequence=0)


def test_attempts_may_be_skipped_but_never_go_back():
    """Any higher attempt may open; an older one is out of order."""
    state = replayed(history("queued provisioning"))
    assert life.evolve(state, event("queued:lost", attempt=5)).attempt == 5
    with pytest.raises(life.OutOfOrder) as error:
        life.evolve(replayed(history("queued", attempt=2)), event("provisioning", sequence=1))
    assert error.value.event.key == (1, 1)


@pytest.mark.parametrize("sequence", [0, 1, 3])
def test_evolve_takes_only_the_next_sequence(sequence):
    """Duplicates and leaps are the caller's to sort out first."""
    with pytest.raises(life.OutOfOrder):
        life.evolve(replayed(history("queued provisioning")), event("running", sequence=sequence))


def test_each_state_carries_what_it_has():
    """The claim, the answer and the scores travel as far as they are of use."""
    match replayed(history("queued provisioning running responded scored scored")):
        case life.RespondedState(attempt=1, sequence=5, claim=claim, answer=answer, scores=scores):
            assert claim == PAYLOADS["provisioning"]
            assert answer == PAYLOADS["responded"]
            assert scores == (PAYLOADS["scored"],) * 2
        case other:
            pytest.fail(f"not responded: {other}")
    assert replayed(history("queued")) == life.QueuedState(1, 0, p.Queued(case=CASE))
    assert replayed(history("cancelled")) == life.CancelledState(1, 0, "operator")


# The grammar, written out from the design: an oracle that shares nothing with the code's own tables.

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
    """Every event type names the state it leads to, but for `scored`, which leads nowhere new."""
    return phase if word == "scored" else word.partition(":")[0]


def test_the_oracle_covers_every_phase_and_every_type():
    """A new state or event type must be entered in the tables above."""
    phases = {phase.value for phase in Phase}
    assert set(ACCEPTS_IN_THE_SAME_ATTEMPT) == set(OPENS_A_HIGHER_ATTEMPT) == set(REACHED_BY) == phases
    assert set(EVENT_TYPES) == set(PAYLOADS)


@pytest.mark.parametrize(("phase", "event_type"), list(product(REACHED_BY, EVENT_TYPES)))
def test_the_next_event_is_accepted_exactly_where_the_design_says(phase, event_type):
    """`advance`, `evolve` and `decide` agree with the design for every pair, within an attempt."""
    state = given(REACHED_BY[phase]).state
    assert life.phase_of(state) == phase
    following = event(event_type, attempt=max(state.attempt, 1), sequence=state.sequence + 1)
    if event_type in ACCEPTS_IN_THE_SAME_ATTEMPT[phase].split():
        expected = leads_to(phase, event_type)
        assert life.advance(Phase(phase), event_type, sequence=following.sequence) == expected
        assert life.phase_of(life.evolve(state, following)) == expected
        after = AttemptPosition(Phase(expected), *following.key)
        assert decide(standing(state), record(event_type)) == Decision(after, following.data)
    else:
        with pytest.raises(life.IllegalTransition):
            life.advance(Phase(phase), event_type, sequence=following.sequence)
        with pytest.raises(life.IllegalTransition):
            decide(standing(state), record(event_type))
        if phase != "unopened":  # there the next event is an opening: the other table speaks of it
            with pytest.raises(life.IllegalTransition):
                life.evolve(state, following)


@pytest.mark.parametrize(("phase", "word"), list(product(REACHED_BY, EVERY_OPENING)))
def test_a_higher_attempt_opens_exactly_where_the_design_says(phase, word):
    """`reopen`, `evolve` and `decide` agree with the design for every opening."""
    state = given(REACHED_BY[phase]).state
    opening = event(word, attempt=state.attempt + 1)
    if word in OPENS_A_HIGHER_ATTEMPT[phase].split():
        expected = leads_to(phase, word)
        assert life.reopen(Phase(phase), opening) == expected
        assert life.phase_of(life.evolve(state, opening)) == expected
        after = AttemptPosition(Phase(expected), *opening.key)
        assert decide(standing(state), open_by(word)) == Decision(after, opening.data)
    else:
        with pytest.raises(life.IllegalTransition):
            life.reopen(Phase(phase), opening)
        with pytest.raises(life.IllegalTransition):
            life.evolve(state, opening)


@pytest.mark.parametrize(("phase", "word"), list(product(REACHED_BY, EVERY_OPENING)))
def test_only_sequence_0_opens_an_attempt(phase, word):
    """A higher attempt that begins at another sequence is refused, whatever its first word is."""
    state = given(REACHED_BY[phase]).state
    late = event(word, attempt=state.attempt + 1, sequence=1)
    with pytest.raises(life.IllegalTransition):
        life.reopen(Phase(phase), late)
    with pytest.raises(life.OutOfOrder):
        life.evolve(state, late)


def test_words_for_the_ends_are_those_of_the_design():
    """Closed, settled and final mean what the design says they mean."""
    assert {"completed", "cancelled"} == life.FINAL
    assert {"failed", "timed_out"} == life.SETTLED
    assert (
        {"completed", "retrying", "failed", "timed_out", "cancelled"} == life.CLOSED == life.CLOSING_TYPES
    )
