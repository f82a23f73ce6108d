"""Replay of a stream at the claim: opening, answer and scores on record."""

import pytest

from eventlog import payloads as p
from eventlog.events import Event
from executor.contract import Permanent
from executor.replay import ReplayedAttempt, replay
from tests.builders import CASE, EVALUATION, event, history, raw_entry, wire

FIRST = p.Answer(output="first", cost_usd=1.0)
SECOND = p.Answer(output="second", cost_usd=2.0)
JUDGED = p.Score(evaluator="judge", score=0.5, cost_usd=0.1)


def given(*events: Event, attempt: int = 1) -> ReplayedAttempt:
    return replay(EVALUATION, attempt, wire(events))


def as_event(answer: p.Answer) -> p.Responded:
    return p.Responded(output=answer.output, cost_usd=answer.cost_usd)


def test_a_first_attempt_has_only_its_opening():
    """The opening is the coordinator's event."""
    opening = p.Queued(case=CASE, variant=2, repetition=3, retries=1, in_group=True)
    replayed = given(*history("queued provisioning", queued=opening))
    assert replayed == ReplayedAttempt(opening, None, {})


def test_an_answer_of_an_earlier_attempt_is_found():
    """Whichever attempt paid for it."""
    replayed = given(
        *history("queued provisioning running responded retrying", responded=as_event(FIRST)),
        *history("queued:retry provisioning", attempt=2),
        attempt=2,
    )
    assert replayed.answer == as_event(FIRST)
    assert replayed.opening.reason is p.OpeningReason.RETRY


def test_an_answer_of_the_opening_is_found():
    """Recorded, cached, or from Postgres after Redis was lost."""
    replayed = given(event(p.Queued(case=CASE, answer=FIRST, scores=(JUDGED,))))
    assert (replayed.answer, replayed.scores) == (FIRST, {"judge": JUDGED})


def test_the_newest_answer_counts_in_any_order():
    """The attempt decides, not the position in the stream."""
    newer = history("queued provisioning running responded", attempt=2, responded=as_event(SECOND))
    older = history("queued provisioning running responded", responded=as_event(FIRST))
    replayed = given(*newer, *older, event("queued", attempt=3), attempt=3)
    assert replayed.answer == as_event(SECOND)


def test_scores_of_the_same_answer_add_up_over_attempts():
    """Each evaluator is paid once."""
    one, two = (p.Scored(evaluator=name, score=1.0) for name in ("one", "two"))
    replayed = given(
        *history("queued provisioning running responded scored", responded=as_event(FIRST), scored=one),
        *history(
            "queued provisioning running responded scored", attempt=2, responded=as_event(FIRST), scored=two
        ),
        event("queued", attempt=3),
        attempt=3,
    )
    assert replayed.scores == {"one": one, "two": two}


def test_a_score_of_an_older_answer_is_not_one_of_the_newer():
    """A score of another answer does not count."""
    replayed = given(
        *history("queued provisioning running responded scored", responded=as_event(FIRST)),
        event(p.Queued(case=CASE, answer=SECOND), attempt=2),
        attempt=2,
    )
    assert (replayed.answer, replayed.scores) == (SECOND, {})


def test_the_first_entry_of_a_key_is_the_event():
    """As for every consumer of the log."""
    [_, _, _, mine] = history("queued provisioning running responded", responded=as_event(FIRST))
    [_, _, _, other] = history("queued provisioning running responded", responded=as_event(SECOND))
    assert given(event("queued"), mine, other).answer == as_event(FIRST)


def test_unreadable_entries_are_skipped():
    """One bad entry does not hide the others."""
    stream = [
        (b"1-0", [b"nonsense", b"here"]),
        raw_entry(event("responded", sequence=3), event=b"{"),
        *wire(history("queued provisioning")),
    ]
    assert replay(EVALUATION, 1, stream).answer is None


def test_fields_in_another_order_are_decoded():
    """Any client may write to the log."""
    [(entry_id, fields)] = wire([event(p.Queued(case=CASE, answer=FIRST))])
    names, values = fields[::2][::-1], fields[1::2][::-1]
    turned = [part for pair in zip(names, values, strict=True) for part in pair]
    assert replay(EVALUATION, 1, [(entry_id, turned)]).answer == FIRST


@pytest.mark.parametrize("stream", [[], history("queued"), [event("cancelled", attempt=2)]])
def test_an_unreadable_opening_is_a_permanent_fault(stream):
    """A retry would not help: the evaluation fails with the reason."""
    with pytest.raises(Permanent) as caught:
        given(*stream, attempt=2)
    assert caught.value.kind == "invalid"
