"""The next attempt, given all that is on record: what goes along, what is left, and when it is enough."""

from collections.abc import Sequence
from datetime import date
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.attempts import (
    LOST_LIMIT,
    AttemptFactory,
    Charges,
    Logged,
    charges_of,
    last_opening,
    newest_answer,
    scores_of,
)
from domain.retry_policy import MOVED, RATE_LIMITED, SHUTDOWN, UNCHARGED_KINDS
from eventlog import lifecycle as life
from eventlog import payloads as p
from eventlog.events import Event
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow
from tests.builders import BATCH, CASE, EVALUATION, START, history

OPENER = AttemptFactory("coordinator", START, "epoch-7")
CLAIMED = "provisioning running"


def logged(*attempts: str, **own: Any) -> Logged:
    """Put attempts on record, numbered from 1."""
    events = (
        event
        for number, words in enumerate(attempts, start=1)
        for event in history(words, attempt=number, **own)
    )
    return {event.key: event for event in events}


def row_of(known: Logged, *, owner: str | None = "executor-9") -> EvaluationRow:
    """Return the row of an evaluation that has come so far."""
    state: life.State = life.UnopenedState()
    for key in sorted(known):
        state = life.evolve(state, known[key])
    cursor = Cursor(state.attempt, state.sequence, life.phase_of(state))
    return EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), cursor, owner)


def again(known: Logged, reason: str, *, retries: int = 3) -> list[Event]:
    """Open the next attempt."""
    return OPENER.again(row_of(known), known, reason=p.OpeningReason(reason), retries=retries)


def opening(events: Sequence[Event]) -> p.Queued:
    """Return the payload of the opening."""
    data = events[0].data
    assert isinstance(data, p.Queued)
    return data


# -- what goes along


def test_the_next_attempt_is_the_last_one_opened_anew() -> None:
    """The same case, variant and repetition; a new number, a reason, the epoch of now."""
    first = p.Queued(case=CASE, variant=3, repetition=2, in_group=True)
    [event] = again(logged(f"queued {CLAIMED} retrying", queued=first), "retry")
    assert (event.key, event.source, event.occurred_at) == ((2, 0), "coordinator", START)
    assert event.data == p.Queued(
        case=CASE, variant=3, repetition=2, in_group=True,
        reason=p.OpeningReason.RETRY, epoch="epoch-7", retries=2,
    )  # fmt: skip


def test_an_answer_on_record_goes_along() -> None:
    """With what it cost, so that nobody asks again."""
    said = p.Responded(output="42", usage=p.TokenUsage(input_tokens=3), cost_usd=0.5, latency_ms=9.0)
    known = logged(f"queued {CLAIMED} responded retrying", responded=said)
    assert opening(again(known, "retry")).answer == p.Answer("42", p.TokenUsage(3), 0.5, 9.0)


def test_an_answer_outlives_attempts_that_had_none() -> None:
    """It is carried on by the openings, and found even where one of them did not have it."""
    known = logged(f"queued {CLAIMED} responded", f"queued:lost {CLAIMED}", f"queued:lost {CLAIMED}")
    answer, attempt = newest_answer(known)
    assert (answer, attempt) == (p.Answer("4", p.TokenUsage(7, 1), 0.001), 1)


def test_the_newest_answer_wins() -> None:
    """Of two that were paid for."""
    newer = history(f"queued:lost {CLAIMED} responded", attempt=2, responded=p.Responded(output="five"))
    known = {**logged(f"queued {CLAIMED} responded"), **{event.key: event for event in newer}}
    answer, attempt = newest_answer(known)
    assert answer is not None
    assert (answer.output, attempt) == ("five", 2)


def test_an_answer_that_was_known_at_the_start_goes_along() -> None:
    """Recorded, or cached."""
    recorded = p.Queued(case=CASE, answer=p.Answer("4", cached=True))
    known = logged(f"queued {CLAIMED} retrying", queued=recorded)
    assert opening(again(known, "retry")).answer == p.Answer("4", cached=True)


def test_scores_go_along_with_their_answer() -> None:
    """Those of the newest answer, the newest of each evaluator."""
    known = logged(f"queued {CLAIMED} responded scored scored")
    other = history(
        "queued:lost provisioning running responded scored",
        attempt=2,
        responded=p.Responded(output="five"),
        scored=p.Scored(evaluator="judge", score=0.5, cost_usd=0.1),
    )
    assert [score.evaluator for score in opening(again(known, "lost")).scores] == ["exact"]
    both = {**known, **{event.key: event for event in other}}
    assert opening(again(both, "lost")).scores == (p.Score("judge", 0.5, cost_usd=0.1),)


def test_a_score_that_came_late_goes_along_with_those_who_took_its_answer_over() -> None:
    """It was given to the same answer, so it is not paid for again, though an opening went without it."""
    taken_over = p.Queued(case=CASE, answer=p.Answer("4"), reason=p.OpeningReason.LOST)
    second = history("queued", attempt=2, queued=taken_over)
    known = {**logged(f"queued {CLAIMED} responded scored"), **{event.key: event for event in second}}
    assert newest_answer(known) == (p.Answer("4"), 1)
    assert [score.evaluator for score in opening(again(known, "lost")).scores] == ["exact"]


def test_scores_that_came_along_are_kept_and_replaced_one_by_one() -> None:
    """An opening brings scores, the attempt adds to them."""
    brought = p.Queued(
        case=CASE, answer=p.Answer("4"), scores=(p.Score("exact", 0.0), p.Score("regex", 1.0))
    )
    known = logged("queued provisioning running responded scored", queued=brought)
    assert {score.evaluator: score.score for score in scores_of(known, since=1)} == {
        "exact": 1.0,
        "regex": 1.0,
    }


def test_without_an_answer_there_are_no_scores() -> None:
    """A score of nothing can't be."""
    assert opening(again(logged(f"queued {CLAIMED}"), "lost")).scores == ()


def test_an_evaluation_without_an_opening_was_never_accepted() -> None:
    """That is said aloud."""
    with pytest.raises(LookupError, match="can't have been accepted"):
        last_opening({})


# -- what is no retry


def closed_as(kind: str) -> dict[str, p.AnyPayload]:
    """Close attempts for this kind of fault."""
    return {"retrying": p.Retrying(p.ErrorDetail(kind=kind), START)}


@pytest.mark.parametrize(
    ("words", "reason", "own", "shown", "resumed"),
    [
        pytest.param(f"queued {CLAIMED} retrying", "retry", closed_as(SHUTDOWN), "retry", True, id="back"),
        pytest.param("queued provisioning retrying", "retry", closed_as(MOVED), "retry", True, id="moved"),
        pytest.param("queued", "lost", {}, "submitted", True, id="never claimed"),
        pytest.param("queued provisioning", "lost", {}, "lost", True, id="claimed and not started"),
        pytest.param(f"queued {CLAIMED}", "lost", {}, "lost", None, id="started and lost"),
        pytest.param(f"queued {CLAIMED} retrying", "retry", {}, "retry", None, id="failed and tried again"),
        pytest.param(
            f"queued {CLAIMED} retrying", "retry", closed_as(RATE_LIMITED), "retry", None, id="refused"
        ),
    ],
)
def test_an_attempt_after_one_that_was_not_tried_is_marked(
    words: str, reason: str, own: dict[str, p.AnyPayload], shown: str, *, resumed: bool | None
) -> None:
    """A hand-back, a move, and what never started are no retries; of the unclaimed no executor was lost."""
    queued = opening(again(logged(words, **own), reason))
    assert (queued.reason, queued.resumed) == (p.OpeningReason(shown), resumed)


def test_the_mark_is_not_carried_on() -> None:
    """An attempt that was continued and then failed is followed by a retry."""
    first = p.Queued(case=CASE, resumed=True)
    assert opening(again(logged(f"queued {CLAIMED} retrying", queued=first), "retry")).resumed is None


# -- the budget


@pytest.mark.parametrize(
    ("attempts", "charges"),
    [
        (["queued"], Charges()),
        ([f"queued {CLAIMED}"], Charges(lost=1)),
        (["queued provisioning"], Charges(lost=1, unstarted=1)),
        (["queued provisioning", f"queued:lost {CLAIMED} retrying"], Charges(1, 1, 1)),
        ([f"queued {CLAIMED} responded scored"], Charges(lost=1)),
        ([f"queued {CLAIMED} retrying"], Charges(transient=1)),
        ([f"queued {CLAIMED} failed"], Charges()),
        ([f"queued {CLAIMED} retrying", f"queued:retry {CLAIMED}"], Charges(1, 1)),
        ([f"queued {CLAIMED} retrying", "queued:retry", "queued:lost"], Charges(1)),
        ([f"queued {CLAIMED}", f"queued:lost {CLAIMED} failed", "queued:operator"], Charges()),
        ([f"queued {CLAIMED} failed", f"queued:operator {CLAIMED}"], Charges(lost=1)),
        ([f"queued {CLAIMED}", "timed_out"], Charges(lost=1)),
    ],
)
def test_charges(attempts: list[str], charges: Charges) -> None:
    """Faults that pass and executors that were lost, since an operator last asked; nothing else."""
    assert charges_of(logged(*attempts)) == charges


def test_work_that_never_started_uses_up_no_retry() -> None:
    """An executor that died right after its claim leaves the allowance as it was."""
    unstarted = again(logged("queued provisioning"), "lost", retries=0)
    assert [event.type for event in unstarted] == ["queued"]
    started = again(logged(f"queued {CLAIMED}"), "lost", retries=0)
    assert [event.type for event in started] == ["queued", "failed"]


@pytest.mark.parametrize("kind", sorted(UNCHARGED_KINDS))
def test_what_is_nobodys_fault_costs_nothing(kind: str) -> None:
    """Rate limits and shutdowns leave the retries as they are."""
    patience = p.Retrying(error=p.ErrorDetail(kind=kind), retry_at=START)
    known = logged(*[f"queued {CLAIMED} retrying"] * 5, retrying=patience)
    assert opening(again(known, "retry")).retries == 3


def test_retries_count_down() -> None:
    """What is left travels with the opening, for the executor to decide by."""
    attempts: list[str] = []
    left = []
    for _ in range(5):
        attempts.append(f"queued {CLAIMED} retrying")
        left.append(opening(again(logged(*attempts), "retry")).retries)
    assert left == [2, 1, 0, 0, 0]


def test_an_operator_gives_all_of_them_anew() -> None:
    """However many were used up before, and by whomever."""
    known = logged(f"queued {CLAIMED} retrying", f"queued:retry {CLAIMED}", f"queued:lost {CLAIMED} failed")
    assert opening(again(known, "operator")).retries == 3


def test_a_case_that_kills_its_executors_is_given_up() -> None:
    """After the third, whatever its budget: opened, and failed at once, with both events legal."""
    known = logged(*[f"queued {CLAIMED}"] * LOST_LIMIT)
    queued, failed = again(known, "lost", retries=100)
    assert (queued.key, failed.key) == ((4, 0), (4, 1))
    assert failed.data == p.Failed(
        error=p.ErrorDetail("lost", "its executor was lost 3 times, last executor-9; no retry is left")
    )
    state: life.State = life.UnopenedState()
    for event in (*known.values(), queued, failed):
        state = life.evolve(state, event)
    assert isinstance(state, life.FailedState)


def test_a_lost_executor_uses_up_a_retry() -> None:
    """With none left, the first loss is the last."""
    known = logged(f"queued {CLAIMED}")
    assert len(again(known, "lost", retries=1)) == 1
    *_, failed = again(known, "lost", retries=0)
    assert isinstance(failed.data, p.Failed)
    assert "lost once" in failed.data.error.message


def test_a_loss_that_nobody_had_claimed_is_never_the_last() -> None:
    """Redis was lost, again and again: the case has done nothing."""
    known = logged("queued", *["queued:lost"] * 9)
    assert len(again(known, "lost", retries=0)) == 1


def test_giving_up_is_legal_for_what_was_never_tried() -> None:
    """An attempt of which somebody may have been told is replaced by one that opens and fails at once."""
    known = logged("queued")
    events = OPENER.give_up(
        row_of(known), known, p.ErrorDetail("dependency", "needs another"), was_published=True
    )
    state = life.evolve(life.evolve(life.UnopenedState(), known[1, 0]), events[0])
    assert isinstance(life.evolve(state, events[1]), life.FailedState)


def test_an_attempt_that_nobody_was_told_of_fails_by_itself() -> None:
    """Nobody else can write to it, and nothing was tried twice."""
    known = logged("queued")
    [failed] = OPENER.give_up(
        row_of(known), known, p.ErrorDetail("dependency", "needs another"), was_published=False
    )
    state = life.evolve(life.evolve(life.UnopenedState(), known[1, 0]), failed)
    assert isinstance(state, life.FailedState)
    assert failed.key == (1, 1)


LIVES = st.lists(
    st.sampled_from(["", "provisioning", CLAIMED, f"{CLAIMED} responded", f"{CLAIMED} retrying"]),
    min_size=1,
    max_size=8,
)


@given(LIVES, st.sampled_from(["lost", "retry", "operator"]), st.integers(0, 5))
def test_whatever_happened_the_next_attempt_is_legal(lives: list[str], reason: str, retries: int) -> None:
    """Its number follows, its events do, and its budget never grows without an operator."""
    known = logged(*(f"queued:lost {words}".strip() for words in lives))
    events = again(known, reason, retries=retries)
    state: life.State = life.UnopenedState()
    for event in (*(known[key] for key in sorted(known)), *events):
        state = life.evolve(state, event)
    opened = opening(events)
    assert state.attempt == len(lives) + 1
    assert 0 <= opened.retries <= retries
    assert (opened.answer is not None) == any("responded" in words for words in lives)
    if reason == "operator":
        assert (opened.retries, len(events)) == (retries, 1)
    assert isinstance(state, life.FailedState) == (len(events) == 2)


@given(LIVES, LIVES)
def test_an_operator_is_a_new_beginning(before: list[str], after: list[str]) -> None:
    """What is charged after an operator asked does not depend on what had happened before."""
    later = [f"queued:lost {words}".strip() for words in after]
    later[0] = later[0].replace("lost", "operator")
    earlier = [f"queued:lost {words}".strip() for words in before]
    assert charges_of(logged(*earlier, *later)) == charges_of(logged(*later))
