"""The next attempt, given the recorded events: what it carries, the retries left, and when none are."""

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
from eventlog import payloads as p
from eventlog import states
from eventlog.events import Event
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow
from tests.builders import BATCH, CASE, EVALUATION, START, history

OPENER = AttemptFactory("coordinator", START, "epoch-7")
CLAIMED = "provisioning running"


def logged(*attempts: str, **own: Any) -> Logged:
    """Record attempts, numbered from 1."""
    events = (
        event
        for number, words in enumerate(attempts, start=1)
        for event in history(words, attempt=number, **own)
    )
    return {event.key: event for event in events}


def row_of(known: Logged, *, owner: str | None = "executor-9") -> EvaluationRow:
    """Return the row of an evaluation with these events."""
    state: states.State = states.UnopenedState()
    for key in sorted(known):
        state = states.evolve(state, known[key])
    cursor = Cursor(state.attempt, state.sequence, states.phase_of(state))
    return EvaluationRow(EVALUATION, BATCH, date(2026, 1, 1), cursor, owner)


def again(known: Logged, reason: str, *, retries: int = 3) -> list[Event]:
    """Open the next attempt."""
    return OPENER.again(row_of(known), known, reason=p.OpeningReason(reason), retries=retries)


def opening(events: Sequence[Event]) -> p.Queued:
    """Return the payload of the opening."""
    data = events[0].data
    assert isinstance(data, p.Queued)
    return data


# -- what is carried over


def test_the_next_attempt_repeats_the_last_opening() -> None:
    """It has the same case, variant and repetition, the next number, a reason and the current epoch."""
    first = p.Queued(case=CASE, variant=3, repetition=2, in_group=True)
    [event] = again(logged(f"queued {CLAIMED} retrying", queued=first), "retry")
    assert (event.key, event.source, event.occurred_at) == ((2, 0), "coordinator", START)
    assert event.data == p.Queued(
        case=CASE, variant=3, repetition=2, in_group=True,
        reason=p.OpeningReason.RETRY, epoch="epoch-7", retries=2,
    )  # fmt: skip


def test_a_recorded_answer_is_carried_over() -> None:
    """The next opening has the answer with its cost, so no call is repeated."""
    response = p.Responded(output="42", usage=p.TokenUsage(input_tokens=3), cost_usd=0.5, latency_ms=9.0)
    known = logged(f"queued {CLAIMED} responded retrying", responded=response)
    assert opening(again(known, "retry")).answer == p.Answer("42", p.TokenUsage(3), 0.5, 9.0)


def test_an_answer_is_found_behind_attempts_without_one() -> None:
    """Openings carry it, and it is found even where one of them lacks it."""
    known = logged(f"queued {CLAIMED} responded", f"queued:lost {CLAIMED}", f"queued:lost {CLAIMED}")
    answer, attempt = newest_answer(known)
    assert (answer, attempt) == (p.Answer("4", p.TokenUsage(7, 1), 0.001), 1)


def test_the_newest_answer_wins() -> None:
    """Of two paid answers, the next opening has the newer one."""
    newer = history(f"queued:lost {CLAIMED} responded", attempt=2, responded=p.Responded(output="five"))
    known = {**logged(f"queued {CLAIMED} responded"), **{event.key: event for event in newer}}
    answer, attempt = newest_answer(known)
    assert answer is not None
    assert (answer.output, attempt) == ("five", 2)


def test_an_answer_of_the_first_opening_is_carried_over() -> None:
    """A recorded or cached answer stays with the evaluation."""
    recorded = p.Queued(case=CASE, answer=p.Answer("4", cached=True))
    known = logged(f"queued {CLAIMED} retrying", queued=recorded)
    assert opening(again(known, "retry")).answer == p.Answer("4", cached=True)


def test_scores_are_carried_over_with_their_answer() -> None:
    """The next opening has the newest score of each evaluator for the newest answer."""
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


def test_a_late_score_is_carried_over_with_its_answer() -> None:
    """It belongs to the same answer, so it is not paid twice, though an opening in between lacks it."""
    taken_over = p.Queued(case=CASE, answer=p.Answer("4"), reason=p.OpeningReason.LOST)
    second = history("queued", attempt=2, queued=taken_over)
    known = {**logged(f"queued {CLAIMED} responded scored"), **{event.key: event for event in second}}
    assert newest_answer(known) == (p.Answer("4"), 1)
    assert [score.evaluator for score in opening(again(known, "lost")).scores] == ["exact"]


def test_carried_scores_are_replaced_by_evaluator() -> None:
    """A new score replaces only the carried score of the same evaluator."""
    brought = p.Queued(
        case=CASE, answer=p.Answer("4"), scores=(p.Score("exact", 0.0), p.Score("regex", 1.0))
    )
    known = logged("queued provisioning running responded scored", queued=brought)
    assert {score.evaluator: score.score for score in scores_of(known, since=1)} == {
        "exact": 1.0,
        "regex": 1.0,
    }


def test_without_an_answer_there_are_no_scores() -> None:
    """An opening without an answer carries no score."""
    assert opening(again(logged(f"queued {CLAIMED}"), "lost")).scores == ()


def test_an_evaluation_without_an_opening_is_an_error() -> None:
    """The lookup of a missing opening raises."""
    with pytest.raises(LookupError, match="can't have been accepted"):
        last_opening({})


# -- attempts that are no retry


def closed_as(kind: str) -> dict[str, p.AnyPayload]:
    """Close attempts with this kind of fault."""
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
def test_an_attempt_that_is_no_retry_is_marked(
    words: str, reason: str, own: dict[str, p.AnyPayload], shown: str, *, resumed: bool | None
) -> None:
    """After a hand-back, a move or a lost start the opening is resumed; unclaimed means not lost."""
    queued = opening(again(logged(words, **own), reason))
    assert (queued.reason, queued.resumed) == (p.OpeningReason(shown), resumed)


def test_the_mark_is_not_carried_over() -> None:
    """A resumed attempt that fails is followed by an ordinary retry."""
    first = p.Queued(case=CASE, resumed=True)
    assert opening(again(logged(f"queued {CLAIMED} retrying", queued=first), "retry")).resumed is None


# -- retries


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
    """Only transient faults and lost executors since the last retry by an operator are charged."""
    assert charges_of(logged(*attempts)) == charges


def test_work_that_never_started_uses_up_no_retry() -> None:
    """An executor that dies right after its claim leaves the retries unchanged."""
    unstarted = again(logged("queued provisioning"), "lost", retries=0)
    assert [event.type for event in unstarted] == ["queued"]
    started = again(logged(f"queued {CLAIMED}"), "lost", retries=0)
    assert [event.type for event in started] == ["queued", "failed"]


@pytest.mark.parametrize("kind", sorted(UNCHARGED_KINDS))
def test_rate_limits_and_shutdowns_use_up_no_retry(kind: str) -> None:
    """The next opening has as many retries as the last one."""
    retrying = p.Retrying(error=p.ErrorDetail(kind=kind), retry_at=START)
    known = logged(*[f"queued {CLAIMED} retrying"] * 5, retrying=retrying)
    assert opening(again(known, "retry")).retries == 3


def test_retries_count_down() -> None:
    """The opening carries the retries left, by which the executor decides."""
    attempts: list[str] = []
    left = []
    for _ in range(5):
        attempts.append(f"queued {CLAIMED} retrying")
        left.append(opening(again(logged(*attempts), "retry")).retries)
    assert left == [2, 1, 0, 0, 0]


def test_a_retry_by_an_operator_restores_all_retries() -> None:
    """Charges of earlier attempts no longer count."""
    known = logged(f"queued {CLAIMED} retrying", f"queued:retry {CLAIMED}", f"queued:lost {CLAIMED} failed")
    assert opening(again(known, "operator")).retries == 3


def test_a_case_that_loses_its_executors_fails() -> None:
    """After the third loss the next attempt opens and fails at once, legally, whatever its retries."""
    known = logged(*[f"queued {CLAIMED}"] * LOST_LIMIT)
    queued, failed = again(known, "lost", retries=100)
    assert (queued.key, failed.key) == ((4, 0), (4, 1))
    assert failed.data == p.Failed(
        error=p.ErrorDetail("lost", "its executor was lost 3 times, last executor-9; no retry is left")
    )
    state: states.State = states.UnopenedState()
    for event in (*known.values(), queued, failed):
        state = states.evolve(state, event)
    assert isinstance(state, states.FailedState)


def test_a_lost_executor_uses_up_a_retry() -> None:
    """Without a retry left, the first loss fails the evaluation."""
    known = logged(f"queued {CLAIMED}")
    assert len(again(known, "lost", retries=1)) == 1
    *_, failed = again(known, "lost", retries=0)
    assert isinstance(failed.data, p.Failed)
    assert "lost once" in failed.data.error.message


def test_the_loss_of_an_unclaimed_attempt_is_never_the_last() -> None:
    """Repeated data loss in Redis fails no evaluation, because its case was never run."""
    known = logged("queued", *["queued:lost"] * 9)
    assert len(again(known, "lost", retries=0)) == 1


def test_giving_up_a_published_attempt_opens_the_next() -> None:
    """The next attempt opens, which fences the published one, and fails at once."""
    known = logged("queued")
    events = OPENER.give_up(
        row_of(known), known, p.ErrorDetail("dependency", "needs another"), was_published=True
    )
    state = states.evolve(states.evolve(states.UnopenedState(), known[1, 0]), events[0])
    assert isinstance(states.evolve(state, events[1]), states.FailedState)


def test_giving_up_an_unpublished_attempt_fails_it() -> None:
    """The coordinator is its only writer, so no further attempt opens."""
    known = logged("queued")
    [failed] = OPENER.give_up(
        row_of(known), known, p.ErrorDetail("dependency", "needs another"), was_published=False
    )
    state = states.evolve(states.evolve(states.UnopenedState(), known[1, 0]), failed)
    assert isinstance(state, states.FailedState)
    assert failed.key == (1, 1)


LIVES = st.lists(
    st.sampled_from(["", "provisioning", CLAIMED, f"{CLAIMED} responded", f"{CLAIMED} retrying"]),
    min_size=1,
    max_size=8,
)


@given(LIVES, st.sampled_from(["lost", "retry", "operator"]), st.integers(0, 5))
def test_the_next_attempt_is_legal_after_any_history(lives: list[str], reason: str, retries: int) -> None:
    """Numbers and events are legal, and retries never grow without an operator."""
    known = logged(*(f"queued:lost {words}".strip() for words in lives))
    events = again(known, reason, retries=retries)
    state: states.State = states.UnopenedState()
    for event in (*(known[key] for key in sorted(known)), *events):
        state = states.evolve(state, event)
    opened = opening(events)
    assert state.attempt == len(lives) + 1
    assert 0 <= opened.retries <= retries
    assert (opened.answer is not None) == any("responded" in words for words in lives)
    if reason == "operator":
        assert (opened.retries, len(events)) == (retries, 1)
    assert isinstance(state, states.FailedState) == (len(events) == 2)


@given(LIVES, LIVES)
def test_charges_start_anew_after_an_operators_retry(before: list[str], after: list[str]) -> None:
    """Charges after a retry by an operator do not depend on the history before it."""
    later = [f"queued:lost {words}".strip() for words in after]
    later[0] = later[0].replace("lost", "operator")
    earlier = [f"queued:lost {words}".strip() for words in before]
    assert charges_of(logged(*earlier, *later)) == charges_of(logged(*later))
