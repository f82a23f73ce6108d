"""How an attempt is closed that came to no result: one pure table.

    fault                                retries left             none left
    RateLimited                          retrying, not charged    retrying, not charged
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

The answer is on record before any evaluator is asked, so another attempt after a fault of an evaluator
does not pay for the answer again. So are the scores of the evaluators that came to one: the next attempt
asks the others only, and `failed` carries them. What is charged must never bear the name of what is not.
"""

import re
from collections.abc import Sequence
from datetime import datetime, timedelta

from domain.retry_policy import RATE_LIMITED, UNCHARGED_KINDS, UNREACHABLE
from eventlog import payloads as p
from eventlog.characters import without_half_characters
from eventlog.codec import OversizeEvent
from eventlog.redaction import redact_head
from executor.contract import CallFault, NeverReached, RateLimited, Transient
from executor.verdict import unscored

Closing = p.Completed | p.Retrying | p.Failed | p.TimedOut
"""By which an owner closes its attempt."""

MAX_MESSAGE = 4_000
FIRST_BACKOFF = timedelta(seconds=1)
LONGEST_BACKOFF = timedelta(seconds=60)
FIRST_CONTACT_RETRY = timedelta(seconds=5)
LONGEST_PATIENCE = timedelta(days=1)
"""What a Retry-After may ask for at most."""
NO_ANSWER = p.Answer(output="")
_UNPRINTABLE = re.compile(r"[\x00-\x1f\x7f]+")


class TargetTimedOut(Exception):  # noqa: N818 - what happened
    """The target did not answer in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no answer within {seconds:g} s")
        self.seconds = seconds


class EvaluatorTimedOut(Exception):  # noqa: N818 - what happened
    """An evaluator did not judge in time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no judgement within {seconds:g} s")
        self.seconds = seconds


class EvaluatorFault(Exception):  # noqa: N818 - what happened
    """An evaluator came to no judgement, perhaps others too; what is on record of the rest stays."""

    def __init__(
        self,
        evaluator: str,
        cause: BaseException,
        *,
        others: Sequence["EvaluatorFault"] = (),
        answer: p.Answer = NO_ANSWER,
        scores: Sequence[p.Score] = (),
    ) -> None:
        super().__init__("; ".join([f"evaluator {evaluator}: {described(cause)}", *map(str, others)]))
        self.evaluator = evaluator
        self.cause = cause
        self.answer, self.scores = answer, scores

    @property
    def is_hopeless(self) -> bool:
        """Whether another attempt would not help."""
        return not isinstance(self.cause, RateLimited | NeverReached | Transient | EvaluatorTimedOut)


def close_after(
    error: BaseException, *, retries: int, attempt: int, now: datetime, jitter: float
) -> p.Retrying | p.Failed | p.TimedOut:
    """Say how an attempt ends; `jitter`, from 0 to 1, spreads those that try again."""
    cause = error.cause if isinstance(error, EvaluatorFault) else error
    backoff = now + full_jitter(attempt, jitter)
    match cause:
        case RateLimited(retry_after=retry_after):
            return p.Retrying(_fault(RATE_LIMITED, error), now + _patience(retry_after))
        case NeverReached():
            return p.Retrying(_fault(UNREACHABLE, error), now + FIRST_CONTACT_RETRY)
        case Transient(kind=kind) if retries > 0:
            return p.Retrying(_fault(charged(kind), error), backoff)
        case TargetTimedOut() | EvaluatorTimedOut() if retries > 0:
            return p.Retrying(_fault("timeout", error), backoff)
        case TargetTimedOut(seconds=seconds):
            return p.TimedOut(limit="task", seconds=seconds, error=_fault("timeout", error))
        case _:
            return _failed(error)


def _failed(error: BaseException) -> p.Failed:
    fault = _fault(_kind_of(error), error)
    if isinstance(error, EvaluatorFault):
        return unscored(error.answer, error.scores, fault)
    return p.Failed(fault)


def full_jitter(attempt: int, jitter: float) -> timedelta:
    """Wait anything up to a bound that doubles with each attempt."""
    doublings = min(attempt - 1, 16)
    return min(FIRST_BACKOFF * (1 << doublings), LONGEST_BACKOFF) * jitter


def charged(kind: str) -> str:
    """Name a fault that uses up a retry, whatever its target calls it."""
    return "transient" if kind in UNCHARGED_KINDS else kind


def described(error: BaseException) -> str:
    """Say what went wrong: a fault by its words, anything else by its type, too."""
    if isinstance(error, CallFault | TargetTimedOut | EvaluatorTimedOut | EvaluatorFault):
        return str(error)
    return f"{type(error).__name__}: {error}"


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
    message = error.message if isinstance(error, CallFault) else described(error)
    name = redact_head(_UNPRINTABLE.sub(" ", without_half_characters(kind)).strip(), 200)
    whole = without_half_characters(redact_head(message, MAX_MESSAGE))
    return p.ErrorDetail(kind=name or "error", message=whole)


def _patience(asked: timedelta) -> timedelta:
    return min(max(asked, timedelta(0)), LONGEST_PATIENCE)
