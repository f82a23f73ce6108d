"""The `completed` and `responded` events of an answer and its scores."""

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
def test_an_evaluation_passes_unless_an_evaluator_fails_it(passed, verdict):
    """A score without a verdict does not count."""
    assert (
        completed(ANSWER, [score(1.0, passed=each) for each in passed], exit_code=None).verdict == verdict
    )


def test_the_score_is_the_mean_of_all_scores():
    """Without an evaluator there is none."""
    assert completed(ANSWER, [score(1.0), score(0.5)], exit_code=None).score == 0.75
    assert completed(ANSWER, [], exit_code=None).score is None


def test_totals_include_answer_and_scores():
    """Also of scores that were replayed."""
    paid = p.Scored(evaluator="judge", score=1.0, usage=p.TokenUsage(input_tokens=10), cost_usd=0.2)
    result = completed(ANSWER, [paid], exit_code=7)
    assert result.usage == p.TokenUsage(input_tokens=13, output_tokens=2)
    assert result.cost_usd == pytest.approx(0.3)
    assert (result.latency_ms, result.exit_code) == (12.0, 7)
    assert type(result.scores[0]) is p.Score


@pytest.mark.parametrize(
    ("on_record", "cached"), [(True, False), (True, True), (False, True), (False, False)]
)
def test_the_cost_of_an_answer_is_counted_once(on_record, cached):
    """One on record, or from a cache, is marked."""
    answer = p.Answer(output="4", cost_usd=0.1, cached=cached)
    assert responded(answer, on_record=on_record).cached is (on_record or cached)


def test_only_a_paid_score_has_an_event_of_its_own():
    """The others are part of `completed`."""
    assert is_paid(score(1.0, cost=0.1))
    assert is_paid(p.Score(evaluator="e", score=1.0, usage=p.TokenUsage(output_tokens=1)))
    assert not is_paid(score(1.0))
