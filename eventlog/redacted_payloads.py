"""Redaction of payloads: every text that comes from a target, an evaluator or a provider.

Cases are left as they are: they are the user's data, and what is evaluated.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar, cast

from eventlog import payloads as p
from eventlog.redaction import redact

A = TypeVar("A", bound=p.Answer)
S = TypeVar("S", bound=p.Score)
T = TypeVar("T", bound=p.AnyPayload)


def redact_payload(payload: T) -> T:
    """Return a payload without secrets; the same object where there is none."""
    redactor = _REDACTORS.get(type(payload))
    return cast("T", redactor(payload)) if redactor else payload


def redact_answer(answer: A) -> A:
    """Return an answer without secrets."""
    output = redact(answer.output)
    return answer if output == answer.output else replace(answer, output=output)


def redact_score(score: S) -> S:
    """Return a score without secrets."""
    reason = redact(score.reason)
    return score if reason == score.reason else replace(score, reason=reason)


def redact_fault(fault: p.ErrorDetail) -> p.ErrorDetail:
    """Return a fault without secrets."""
    kind, message = redact(fault.kind), redact(fault.message)
    return fault if (kind, message) == (fault.kind, fault.message) else p.ErrorDetail(kind, message)


def _scores(scores: tuple[p.Score, ...]) -> tuple[p.Score, ...]:
    return tuple(map(redact_score, scores)) if scores else scores


def _queued(payload: p.Queued) -> p.Queued:
    if payload.answer is None and not payload.scores:
        return payload
    answer = redact_answer(payload.answer) if payload.answer else None
    return replace(payload, answer=answer, scores=_scores(payload.scores))


def _completed(payload: p.Completed) -> p.Completed:
    output = redact(payload.output) if payload.output else payload.output
    scores = _scores(payload.scores)
    is_same = output == payload.output and scores == payload.scores
    return payload if is_same else replace(payload, output=output, scores=scores)


def _failed(payload: p.Failed) -> p.Failed:
    return replace(payload, error=redact_fault(payload.error), scores=_scores(payload.scores))


def _retrying(payload: p.Retrying) -> p.Retrying:
    return replace(payload, error=redact_fault(payload.error))


def _timed_out(payload: p.TimedOut) -> p.TimedOut:
    return replace(payload, error=redact_fault(payload.error)) if payload.error else payload


def _cancelled(payload: p.Cancelled) -> p.Cancelled:
    return replace(payload, reason=redact(payload.reason))


_REDACTORS: dict[type[object], Callable[..., p.AnyPayload]] = {
    p.Queued: _queued,
    p.Cancelled: _cancelled,
    p.Responded: redact_answer,
    p.Scored: redact_score,
    p.Completed: _completed,
    p.Retrying: _retrying,
    p.Failed: _failed,
    p.TimedOut: _timed_out,
}
