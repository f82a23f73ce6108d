"""The scorecard of an ended evaluation."""

from dataclasses import asdict
from decimal import Decimal

import hypothesis.strategies as st
import pytest
from hypothesis import given
from pydantic_core import from_json

from eventlog import payloads as p
from projections.folds.scorecard import exact, scorecard
from tests.builders import BATCH, EVALUATION, event

SCORES = (
    p.Score(evaluator="exact", score=1.0, passed=True),
    p.Score(evaluator="judge", score=0.5, reason='as "given"\n', cost_usd=0.1),
)


def test_a_completed_event_becomes_its_scorecard():
    """Verdict, scores, totals and exit code are copied unchanged."""
    result = p.Completed(
        verdict="passed",
        score=0.75,
        scores=SCORES,
        usage=p.TokenUsage(input_tokens=7, output_tokens=5),
        cost_usd=0.1,
        latency_ms=12.5,
        exit_code=-9,
    )
    ended = event(result, attempt=2, sequence=5)
    card = scorecard(ended, bridged=True)
    assert card[:4] == (EVALUATION, BATCH, 2, "completed")
    assert (card.verdict, card.score, card.exit_code, card.error) == ("passed", 0.75, -9, None)
    assert (card.tokens, card.cost_usd, card.latency_ms) == (12, Decimal("0.1"), 12.5)
    assert (card.bridged, card.ended_at) == (True, ended.occurred_at)
    assert from_json(card.scores) == [asdict(score) for score in SCORES]


def test_a_failed_event_keeps_its_scores():
    """Without all evaluators there is no verdict, but the scores and their cost are kept."""
    usage = p.TokenUsage(input_tokens=7, output_tokens=5)
    fault = p.ErrorDetail(kind="evaluator", message="evaluator tone: no judgement within 5 s")
    failed = p.Failed(fault, scores=SCORES, usage=usage, cost_usd=0.1, latency_ms=12.5)
    card = scorecard(event(failed, sequence=5), bridged=False)
    assert (card.status, card.verdict, card.score) == ("failed", None, None)
    assert from_json(card.scores) == [asdict(score) for score in SCORES]
    assert (card.tokens, card.cost_usd, card.latency_ms) == (12, Decimal("0.1"), 12.5)
    assert from_json(card.error or b"")["message"] == fault.message


def test_a_completed_event_may_have_no_score():
    """No score is not a score of zero."""
    card = scorecard(event(p.Completed(verdict="failed"), sequence=3), bridged=False)
    assert (card.score, card.scores, card.cost_usd, card.exit_code) == (None, b"[]", Decimal(0), None)


@pytest.mark.parametrize("word", ["failed", "timed_out", "cancelled"])
def test_other_ends_have_a_status_and_no_verdict(word):
    """An evaluation that did not complete has no verdict."""
    card = scorecard(event(word, sequence=0 if word == "cancelled" else 3), bridged=False)
    assert (card.status, card.verdict, card.score, card.tokens) == (word, None, None, 0)


@pytest.mark.parametrize(
    ("payload", "error"),
    [
        (
            p.Failed(error=p.ErrorDetail(kind="permanent", message="no")),
            {"kind": "permanent", "message": "no"},
        ),
        (p.TimedOut(limit="task", seconds=1, error=p.ErrorDetail(kind="k")), {"kind": "k", "message": ""}),
        (p.TimedOut(limit="task", seconds=1), None),
        (p.Cancelled(by="me"), None),
    ],
)
def test_the_error_is_stored_if_there_is_one(payload, error):
    """It is stored as JSON."""
    card = scorecard(event(payload, sequence=0), bridged=False)
    assert (from_json(card.error) if card.error else None) == error


@given(st.lists(st.floats(0, 1e6).map(lambda x: round(x, 6)), max_size=20), st.randoms())
def test_sums_do_not_depend_on_their_order(amounts, random):
    """A float counts as the decimal it was written as, so every worker gets the same sum."""
    shuffled = random.sample(amounts, len(amounts))
    assert str(sum(map(exact, amounts))) == str(sum(map(exact, shuffled)))
    assert [float(exact(amount)) for amount in amounts] == amounts
