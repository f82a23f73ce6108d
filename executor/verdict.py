"""What an answer and its scores come to: pure."""

from collections.abc import Sequence
from dataclasses import replace
from math import fsum

from eventlog import payloads as p
from eventlog.redaction import redact_head

SHORT_REASON = 1_000
"""Characters kept of each reason where all of them together are too much for one event."""


def responded(answer: p.Answer, *, on_record: bool) -> p.Responded:
    """Put an answer on record; one that was there before is marked, so that it is not counted twice."""
    return p.Responded(
        output=answer.output,
        usage=answer.usage,
        cost_usd=answer.cost_usd,
        latency_ms=answer.latency_ms,
        cached=on_record or answer.cached,
    )


def scored(score: p.Score) -> p.Scored:
    """Put a score on record."""
    return p.Scored(
        evaluator=score.evaluator,
        score=score.score,
        passed=score.passed,
        reason=score.reason,
        usage=score.usage,
        cost_usd=score.cost_usd,
    )


def was_paid(score: p.Score) -> bool:
    """Whether a score cost something, so that it is worth an event of its own."""
    return score.cost_usd > 0 or score.usage.total > 0


def completed(answer: p.Answer, scores: Sequence[p.Score], *, exit_code: int | None) -> p.Completed:
    """Sum an attempt up: passed if nobody objects, and the mean of what everybody says."""
    return p.Completed(
        verdict="failed" if any(score.passed is False for score in scores) else "passed",
        score=fsum(score.score for score in scores) / len(scores) if scores else None,
        scores=tuple(map(_plain, scores)),
        usage=_usage(answer, scores),
        cost_usd=_cost(answer, scores),
        latency_ms=answer.latency_ms,
        exit_code=exit_code,
    )


def unscored(answer: p.Answer, scores: Sequence[p.Score], error: p.ErrorDetail) -> p.Failed:
    """Sum up an attempt with evaluators missing: the scores that there are, and the cost."""
    return p.Failed(
        error,
        scores=tuple(map(_plain, scores)),
        usage=_usage(answer, scores),
        cost_usd=_cost(answer, scores),
        latency_ms=answer.latency_ms,
    )


def _usage(answer: p.Answer, scores: Sequence[p.Score]) -> p.TokenUsage:
    each = [answer.usage, *(score.usage for score in scores)]
    return p.TokenUsage(sum(used.input_tokens for used in each), sum(used.output_tokens for used in each))


def _cost(answer: p.Answer, scores: Sequence[p.Score]) -> float:
    return fsum([answer.cost_usd, *(score.cost_usd for score in scores)])


def _plain(score: p.Score) -> p.Score:
    """Make a score of a `Scored` that was found on record."""
    if type(score) is p.Score:
        return score
    return p.Score(
        evaluator=score.evaluator,
        score=score.score,
        passed=score.passed,
        reason=score.reason,
        usage=score.usage,
        cost_usd=score.cost_usd,
    )


def shortened(result: p.Completed | p.Failed) -> p.Completed | p.Failed:
    """Cut reasons short: the verdict must fit into an event, whatever the judges had to say."""
    return replace(result, scores=tuple(map(brief, result.scores)))


def brief(score: p.Score) -> p.Score:
    """Cut the reason of a score short."""
    return replace(score, reason=redact_head(score.reason, SHORT_REASON))
