"""What a claim finds: given a stream, this is known of the evaluation."""

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


def said(answer: p.Answer) -> p.Responded:
    return p.Responded(output=answer.output, cost_usd=answer.cost_usd)


def test_a_fresh_attempt_has_a_case_and_nothing_else():
    """The opening is what the coordinator wrote."""
    opening = p.Queued(case=CASE, variant=2, repetition=3, retries=1, in_group=True)
    known = given(*history("queued provisioning", queued=opening))
    assert known == ReplayedAttempt(opening, None, {})


def test_an_answer_of_an_earlier_attempt_is_known():
    """Whoever paid for it, it is there."""
    known = given(
        *history("queued provisioning running responded retrying", responded=said(FIRST)),
        *history("queued:retry provisioning", attempt=2),
        attempt=2,
    )
    assert known.answer == said(FIRST)
    assert known.opening.reason is p.OpeningReason.RETRY


def test_an_answer_that_the_opening_brings_is_known():
    """Recorded, cached, or from Postgres after Redis was lost."""
    known = given(event(p.Queued(case=CASE, answer=FIRST, scores=(JUDGED,))))
    assert (known.answer, known.scores) == (FIRST, {"judge": JUDGED})


def test_the_newest_answer_counts_wherever_it_stands_in_the_stream():
    """Attempts decide, not arrival."""
    newer = history("queued provisioning running responded", attempt=2, responded=said(SECOND))
    older = history("queued provisioning running responded", responded=said(FIRST))
    known = given(*newer, *older, event("queued", attempt=3), attempt=3)
    assert known.answer == said(SECOND)


def test_scores_of_the_same_answer_add_up_over_attempts():
    """Each judge is paid once."""
    one, two = (p.Scored(evaluator=name, score=1.0) for name in ("one", "two"))
    known = given(
        *history("queued provisioning running responded scored", responded=said(FIRST), scored=one),
        *history(
            "queued provisioning running responded scored", attempt=2, responded=said(FIRST), scored=two
        ),
        event("queued", attempt=3),
        attempt=3,
    )
    assert known.scores == {"one": one, "two": two}


def test_a_score_of_an_older_answer_is_not_one_of_the_newer():
    """What was said of another answer does not count."""
    known = given(
        *history("queued provisioning running responded scored", responded=said(FIRST)),
        event(p.Queued(case=CASE, answer=SECOND), attempt=2),
        attempt=2,
    )
    assert (known.answer, known.scores) == (SECOND, {})


def test_the_first_entry_of_a_key_is_the_event():
    """As for every reader."""
    [_, _, _, mine] = history("queued provisioning running responded", responded=said(FIRST))
    [_, _, _, other] = history("queued provisioning running responded", responded=said(SECOND))
    assert given(event("queued"), mine, other).answer == said(FIRST)


def test_garbage_in_the_stream_is_passed_over():
    """One bad entry does not hide its neighbours."""
    stream = [
        (b"1-0", [b"nonsense", b"here"]),
        raw_entry(event("responded", sequence=3), event=b"{"),
        *wire(history("queued provisioning")),
    ]
    assert replay(EVALUATION, 1, stream).answer is None


def test_fields_in_another_order_are_read_all_the_same():
    """Any client may write to the log."""
    [(entry_id, fields)] = wire([event(p.Queued(case=CASE, answer=FIRST))])
    names, values = fields[::2][::-1], fields[1::2][::-1]
    turned = [part for pair in zip(names, values, strict=True) for part in pair]
    assert replay(EVALUATION, 1, [(entry_id, turned)]).answer == FIRST


@pytest.mark.parametrize("stream", [[], history("queued"), [event("cancelled", attempt=2)]])
def test_without_a_readable_opening_there_is_nothing_to_do(stream):
    """It can't get better: the evaluation fails, and says why."""
    with pytest.raises(Permanent) as caught:
        given(*stream, attempt=2)
    assert caught.value.kind == "invalid"
