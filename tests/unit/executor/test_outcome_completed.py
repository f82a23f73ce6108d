"""What an answer and its scores come to."""

import pytest

from eventlog import payloads as p
from executor.outcome import completed, is_paid, responded

ANSWER = p.Answer(
    output="4", usage=p.TokenUsage(input_tokens=3, output_tokens=2), cost_usd=0.1, latency_ms=12.0
)


def score(value: float, *, passed: bool | None = None, cost: float = 0.0) -> p.Score:
    return p.Score(evaluator=f"e{value}", score=value, passed=passed, cost_usd=cost)


@pytest.mark.parametrize(
    ("passed", "verdict"),
    [
        ([], "passed"),
        ([None], "passed"),
        ([True, None], "passed"),
        ([True, False], "failed"),
        ([None, False], "failed"),
    ],
)
def test_it_passes_where_nobody_objects(passed, verdict):
    """Whoever only measures has no say."""
    assert (
        completed(ANSWER, [score(1.0, passed=each) for each in passed], exit_code=None).verdict == verdict
    )


def test_the_score_is_the_mean_and_none_where_nobody_scored():
    """No evaluators, no score."""
    assert completed(ANSWER, [score(1.0), score(0.5)], exit_code=None).score == 0.75
    assert completed(ANSWER, [], exit_code=None).score is None


def test_totals_are_the_answers_and_the_judges():
    """Also of those whose scores were on record."""
    paid = p.Scored(evaluator="judge", score=1.0, usage=p.TokenUsage(input_tokens=10), cost_usd=0.2)
    result = completed(ANSWER, [paid], exit_code=7)
    assert result.usage == p.TokenUsage(input_tokens=13, output_tokens=2)
    assert result.cost_usd == pytest.approx(0.3)
    assert (result.latency_ms, result.exit_code) == (12.0, 7)
    assert type(result.scores[0]) is p.Score


@pytest.mark.parametrize(
    ("on_record", "cached"), [(True, False), (True, True), (False, True), (False, False)]
)
def test_an_answer_counts_as_spent_once(on_record, cached):
    """What was on record, or came from a cache, is marked."""
    answer = p.Answer(output="4", cost_usd=0.1, cached=cached)
    assert responded(answer, on_record=on_record).cached is (on_record or cached)


def test_only_what_cost_something_needs_an_event_of_its_own():
    """The others travel with the verdict."""
    assert is_paid(score(1.0, cost=0.1))
    assert is_paid(p.Score(evaluator="e", score=1.0, usage=p.TokenUsage(output_tokens=1)))
    assert not is_paid(score(1.0))
