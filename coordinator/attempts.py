"""The next attempt of an evaluation, computed from its recorded events. Pure.

The opening of the next attempt carries every recorded answer and score, so none is paid for twice. Retries
are counted from the charged events since the last retry by an operator, not from attempt numbers.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from domain.retry_policy import HANDED_BACK_KINDS, UNCHARGED_KINDS
from eventlog import payloads as p
from eventlog.codec import make_event
from eventlog.events import Event, EventKey
from projections.folds.change import EvaluationRow

LOST_LIMIT = 3
"""Executors that may be lost while they run a case before the case fails."""

PROVIDER_BATCH = "provider batch"
"""The runtime of attempts that no executor claimed: a provider batch answered them."""

Logged = Mapping[EventKey, Event]
Ending = p.Cancelled | p.TimedOut


@dataclass(frozen=True, slots=True)
class Charges:
    """The retries that an evaluation has used up since it was submitted, or an operator reopened it."""

    transient: int = 0
    lost: int = 0
    """Attempts whose executor was lost, before or after the call of the target."""
    unstarted: int = 0
    """The lost attempts that had not started: they use up no retry."""

    @property
    def total(self) -> int:
        """The number of retries used up."""
        return self.transient + self.lost - self.unstarted


@dataclass(frozen=True, slots=True)
class AttemptFactory:
    """Creates the events of new attempts: their source, time, epoch and trace."""

    source: str
    now: datetime
    epoch: str
    traceparent: str | None = None

    def tracing(self, logged: Logged) -> "AttemptFactory":
        """Return a factory that continues the trace of the evaluation's acceptance."""
        first = logged.get((1, 0))
        return replace(self, traceparent=first.traceparent) if first and first.traceparent else self

    def open(self, row: EvaluationRow, opening: p.Queued | Ending, *after: p.Failed) -> list[Event]:
        """Create the events of the next attempt, numbered from sequence 0."""
        attempt = row.cursor.attempt + 1
        return [
            self.event(row, payload, attempt, sequence)
            for sequence, payload in enumerate((opening, *after))
        ]

    def event(self, row: EvaluationRow, payload: p.AnyPayload, attempt: int, sequence: int) -> Event:
        """Create one event of an evaluation."""
        return make_event(
            payload,
            evaluation_id=row.evaluation_id,
            batch_id=row.batch_id,
            attempt=attempt,
            sequence=sequence,
            occurred_at=self.now,
            source=self.source,
            traceparent=self.traceparent,
        )

    def again(
        self, row: EvaluationRow, logged: Logged, *, reason: p.OpeningReason, retries: int
    ) -> list[Event]:
        """Open the next attempt, or fail the evaluation if no retry is left."""
        charges = Charges() if reason is p.OpeningReason.OPERATOR else charges_of(logged)
        opening = next_opening(logged, reason=reason, epoch=self.epoch, retries=retries - charges.total)
        opening = _as_resumed(opening, attempt_of(logged, row.cursor.attempt))
        if reason is p.OpeningReason.LOST and (charges.lost >= LOST_LIMIT or charges.total > retries):
            return self.open(row, opening, p.Failed(_lost(charges, row), scores=opening.scores))
        return self.open(row, opening)

    def give_up(
        self, row: EvaluationRow, logged: Logged, fault: p.ErrorDetail, *, was_published: bool
    ) -> list[Event]:
        """Fail an evaluation that can't be run.

        An attempt that was never published has no other writer and fails itself; otherwise the next attempt
        opens, which fences the published one, and fails at once.
        """
        if not was_published and row.cursor.sequence == 0:
            return [self.event(row, p.Failed(error=fault), row.cursor.attempt, 1)]
        opening = next_opening(logged, reason=p.OpeningReason.SUBMITTED, epoch=self.epoch, retries=0)
        return self.open(row, opening, p.Failed(fault, scores=opening.scores))


def next_opening(logged: Logged, *, reason: p.OpeningReason, epoch: str, retries: int) -> p.Queued:
    """Create the next `queued` from the last one, with the answer and the scores recorded since."""
    answer, since = newest_answer(logged)
    return replace(
        last_opening(logged),
        reason=reason,
        answer=answer,
        scores=scores_of(logged, since=since) if answer else (),
        epoch=epoch,
        retries=max(0, retries),
        resumed=None,
    )


def attempt_of(logged: Logged, attempt: int) -> list[p.AnyPayload]:
    """Return the payloads of one attempt in order."""
    return [logged[key].data for key in sorted(logged) if key[0] == attempt]


def _as_resumed(opening: p.Queued, before: Sequence[p.AnyPayload]) -> p.Queued:
    """Mark an opening that is not a retry: the attempt before was handed back, moved, or never started.

    The reason after an attempt that was never claimed is `submitted`: no executor was lost.
    """
    match opening.reason, before[-1]:
        case p.OpeningReason.RETRY, p.Retrying(error=fault) if fault.kind in HANDED_BACK_KINDS:
            return replace(opening, resumed=True)
        case p.OpeningReason.LOST, p.Provisioning():
            return replace(opening, resumed=True)
        case p.OpeningReason.LOST, p.Queued():
            return replace(opening, resumed=True, reason=p.OpeningReason.SUBMITTED)
        case _:
            return opening


def last_opening(logged: Logged) -> p.Queued:
    """Return the newest `queued`, which holds the case."""
    for key in sorted(logged, reverse=True):
        data = logged[key].data
        if isinstance(data, p.Queued):
            return data
    raise LookupError("an evaluation without an opening can't have been accepted")


def newest_answer(logged: Logged) -> tuple[p.Answer | None, int]:
    """Return the newest recorded answer, and the first attempt that has it.

    Scores of that attempt are valid for later attempts with the same answer, even if they arrive late.
    """
    newest, since = None, 0
    for key in sorted(logged, reverse=True):
        answer = _answer_in(logged[key].data)
        if answer is None:
            continue
        newest = newest or answer
        if answer.output != newest.output:
            break
        since = key[0]
    return newest, since


def _answer_in(data: p.AnyPayload) -> p.Answer | None:
    match data:
        case p.Responded() as response:
            return answer_of(response)
        case p.Queued(answer=known):
            return known
        case _:
            return None


def answer_of(response: p.Responded) -> p.Answer:
    """Return the answer that an event records."""
    return p.Answer(
        response.output, response.usage, response.cost_usd, response.latency_ms, response.cached
    )


def scores_of(logged: Logged, *, since: int) -> tuple[p.Score, ...]:
    """Return the newest score of each evaluator, of the attempts from `since` on."""
    found: dict[str, p.Score] = {}
    for key in sorted(key for key in logged if key[0] >= since):
        match logged[key].data:
            case p.Scored() as event:
                found[event.evaluator] = p.Score(
                    event.evaluator, event.score, event.passed, event.reason, event.usage, event.cost_usd
                )
            case p.Queued(scores=scores):
                found |= {score.evaluator: score for score in scores}
            case _:
                continue
    return tuple(found.values())


def charges_of(logged: Logged) -> Charges:
    """Count the charges since an operator last reopened the evaluation."""
    attempts: dict[int, list[Event]] = {}
    for key in sorted(logged):
        attempts.setdefault(key[0], []).append(logged[key])
    transient = lost = unstarted = 0
    for events in attempts.values():
        if _asked_by_operator(events):
            transient = lost = unstarted = 0
        transient += _failed_in_passing(events)
        if _was_abandoned(events):
            lost += 1
            unstarted += isinstance(events[-1].data, p.Provisioning)
    return Charges(transient, lost, unstarted)


def _asked_by_operator(events: Sequence[Event]) -> bool:
    opening = events[0].data
    return isinstance(opening, p.Queued) and opening.reason is p.OpeningReason.OPERATOR


def _failed_in_passing(events: Sequence[Event]) -> bool:
    closing = events[-1].data
    return isinstance(closing, p.Retrying) and closing.error.kind not in UNCHARGED_KINDS


def _was_abandoned(events: Sequence[Event]) -> bool:
    closing = events[-1].data
    claims = [event.data for event in events if isinstance(event.data, p.Provisioning)]
    claimed = bool(claims) and claims[0].runtime != PROVIDER_BATCH
    return claimed and isinstance(closing, p.Provisioning | p.Running | p.Responded | p.Scored)


def _lost(charges: Charges, row: EvaluationRow) -> p.ErrorDetail:
    times = "once" if charges.lost == 1 else f"{charges.lost} times"
    last = f", last {row.owner}" if row.owner else ""
    return p.ErrorDetail(kind="lost", message=f"its executor was lost {times}{last}; no retry is left")
