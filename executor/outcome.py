"""The events that end an attempt: pure functions of an answer, its scores, or a fault.

    fault                                retries left             none left
    RateLimited, Overloaded              retrying, not charged    retrying, not charged
    NeverReached                         retrying, not charged    retrying, not charged
    Transient                            retrying                 failed
    TargetTimedOut                       retrying (timeout)       timed_out (task)
    EvaluatorFault of either             retrying, not charged    retrying, not charged
    EvaluatorFault of a Transient        retrying                 failed (evaluator)
    EvaluatorFault of a time-out         retrying (timeout)       failed (evaluator)
    EvaluatorFault of anything else      failed (evaluator)       failed (evaluator)
    Permanent                            failed                   failed
    an answer too large for an event     failed (oversize)        failed (oversize)
    anything else                        failed (error)           failed (error)

How long a retry waits, and which faults are charged: `domain/retry_policy.py`.
The answer is on record before any evaluator is called, so a retry after an evaluator's fault does not pay
for it again. Nor for scores on record: the next attempt calls only the missing evaluators, and `failed`
carries the scores. A fault that is charged is never recorded under the kind of one that is not.
"""

import re
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from math import fsum
from typing import TypeVar

from domain.retry_policy import (
    FIRST_CONTACT_RETRY,
    RATE_LIMITED,
    UNREACHABLE,
    bounded,
    charged_kind,
    full_jitter,
)
from eventlog import payloads as p
from eventlog.characters import without_half_characters
from eventlog.codec import OversizeEvent
from eventlog.redaction import redact_head
from executor.contract import CallFault, NeverReached, RateLimited, Transient

S = TypeVar("S", bound=p.Score)

Closing = p.Completed | p.Retrying | p.Failed | p.TimedOut
"""The events by which an owner closes its attempt."""

MAX_MESSAGE = 4_000
SHORT_REASON = 1_000
"""Characters kept of each reason where all of them together are too large for one event."""
NO_ANSWER = p.Answer(output="")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]+")


class TargetTimedOut(Exception):  # noqa: N818 - what happened
    """The target did not answer before its deadline."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds


class EvaluatorTimedOut(Exception):  # noqa: N818 - what happened
    """An evaluator did not return a score before its deadline."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no judgement within {seconds:g} s")
        self.seconds = seconds


class EvaluatorFault(Exception):  # noqa: N818 - what happened
    """One evaluator or several returned no score; the answer and the other scores are kept."""

    def __init__(
        self,
        evaluator: str,
        cause: BaseException,
        *,
        others: Sequence["EvaluatorFault"] = (),
        answer: p.Answer = NO_ANSWER,
        scores: Sequence[p.Score] = (),
    ) -> None:
        super().__init__("; ".join([f"evaluator {evaluator}: {_describe(cause)}", *map(str, others)]))
        self.evaluator = evaluator
        self.cause = cause
        self.answer, self.scores = answer, scores

    @property
    def is_permanent(self) -> bool:
        """Whether a retry would not help."""
        return not isinstance(self.cause, RateLimited | NeverReached | Transient | EvaluatorTimedOut)


def close_after(
    error: BaseException, *, retries: int, attempt: int, now: datetime, jitter: float
) -> p.Retrying | p.Failed | p.TimedOut:
    """Choose the closing event after a fault; `jitter`, from 0 to 1, spreads retries over the backoff."""
    cause = error.cause if isinstance(error, EvaluatorFault) else error
    backoff = now + full_jitter(attempt, jitter)
    match cause:
        case RateLimited(retry_after=None):
            return p.Retrying(_fault(RATE_LIMITED, error), backoff)
        case RateLimited(retry_after=timedelta() as retry_after):
            return p.Retrying(_fault(RATE_LIMITED, error), now + bounded(retry_after))
        case NeverReached():
            return p.Retrying(_fault(UNREACHABLE, error), now + FIRST_CONTACT_RETRY)
        case Transient(kind=kind) if retries > 0:
            return p.Retrying(_fault(charged_kind(kind), error), backoff)
        case TargetTimedOut() | EvaluatorTimedOut() if retries > 0:
            return p.Retrying(_fault("timeout", error), backoff)
        case TargetTimedOut(seconds=seconds):
            return p.TimedOut(limit="task", seconds=seconds, error=_fault("timeout", error))
        case _:
            return _failed(error)


def completed(answer: p.Answer, scores: Sequence[p.Score], *, exit_code: int | None) -> p.Completed:
    """Aggregate an attempt: passed unless an evaluator failed it; the score is the mean."""
    return p.Completed(
        verdict="failed" if any(score.passed is False for score in scores) else "passed",
        score=fsum(score.score for score in scores) / len(scores) if scores else None,
        scores=tuple(map(_plain, scores)),
        usage=_usage(answer, scores),
        cost_usd=_cost(answer, scores),
        latency_ms=answer.latency_ms,
        exit_code=exit_code,
    )


def responded(answer: p.Answer, *, on_record: bool) -> p.Responded:
    """Make the event of an answer; one from an earlier attempt is marked, and not counted twice."""
    return p.Responded(
        output=answer.output,
        usage=answer.usage,
        cost_usd=answer.cost_usd,
        latency_ms=answer.latency_ms,
        cached=on_record or answer.cached,
    )


def scored(score: p.Score) -> p.Scored:
    """Make the event of a score."""
    return _copied(score, p.Scored)


def is_paid(score: p.Score) -> bool:
    """Whether a score was paid for, so that it has an event of its own."""
    return score.cost_usd > 0 or score.usage.total > 0


def with_short_reasons(closing: p.Completed | p.Failed) -> p.Completed | p.Failed:
    """Truncate every reason: the verdict must fit into an event, however much evaluators wrote."""
    return replace(closing, scores=tuple(map(with_short_reason, closing.scores)))


def with_short_reason(score: p.Score) -> p.Score:
    """Truncate the reason of a score."""
    return replace(score, reason=redact_head(score.reason, SHORT_REASON))


def _failed(error: BaseException) -> p.Failed:
    fault = _fault(_kind_of(error), error)
    if not isinstance(error, EvaluatorFault):
        return p.Failed(fault)
    return p.Failed(
        fault,
        scores=tuple(map(_plain, error.scores)),
        usage=_usage(error.answer, error.scores),
        cost_usd=_cost(error.answer, error.scores),
        latency_ms=error.answer.latency_ms,
    )


def _kind_of(error: BaseException) -> str:
    match error:
        case EvaluatorFault():
            return "evaluator"
        case CallFault(kind=kind):
            return kind
        case OversizeEvent():
            return "oversize"
        case _:
            return "error"


def _fault(kind: str, error: BaseException) -> p.ErrorDetail:
    message = error.message if isinstance(error, CallFault) else _describe(error)
    name = redact_head(_UNPRINTABLE.sub(" ", without_half_characters(kind)).strip(), 200)
    whole = without_half_characters(redact_head(message, MAX_MESSAGE))
    return p.ErrorDetail(kind=name or "error", message=whole)


def _describe(error: BaseException) -> str:
    """Return the message of a fault; of any other exception, its type too."""
    if isinstance(error, CallFault | TargetTimedOut | EvaluatorTimedOut | EvaluatorFault):
        return str(error)
    return f"{type(error).__name__}: {error}"


def _usage(answer: p.Answer, scores: Sequence[p.Score]) -> p.TokenUsage:
    each = [answer.usage, *(score.usage for score in scores)]
    return p.TokenUsage(sum(used.input_tokens for used in each), sum(used.output_tokens for used in each))


def _cost(answer: p.Answer, scores: Sequence[p.Score]) -> float:
    return fsum([answer.cost_usd, *(score.cost_usd for score in scores)])


def _plain(score: p.Score) -> p.Score:
    """Make a score of a `Scored` that was replayed from the log."""
    return score if type(score) is p.Score else _copied(score, p.Score)


def _copied(score: p.Score, kind: type[S]) -> S:
    return kind(
        evaluator=score.evaluator,
        score=score.score,
        passed=score.passed,
        reason=score.reason,
        usage=score.usage,
        cost_usd=score.cost_usd,
    )
