"""The result of an attempt, or of an evaluation by its newest attempt. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from eventlog import payloads as p
from eventlog.events import Event
from eventlog.lifecycle import CLOSING_TYPES
from scoreline.reports.replay.event_text import describe
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.timeline_entry import EntryDisposition, TimelineEntry


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """State, scores, cost and output at the end of a history; None where there is no value."""

    state: str
    verdict: str | None
    score: float | None
    scores: dict[str, float]
    tokens: int
    cost_usd: float
    latency_ms: float
    exit_code: int | None
    error: str | None
    bridged: bool
    took: timedelta | None
    output: str | None


def result(history: EvaluationHistory, attempt: int | None = None) -> AttemptResult:
    """Return the result of a history, or of one attempt of it."""
    number = history.cursor.attempt if attempt is None else attempt
    lines = [
        n
        for n in history.lines
        if n.event.attempt == number and n.disposition in {EntryDisposition.APPLIED, EntryDisposition.LATE}
    ]
    closing = next((n.event for n in lines if n.event.type in CLOSING_TYPES), None)
    data = closing.data if closing else None
    completed = data if isinstance(data, p.Completed) else None
    failed = data if isinstance(data, p.Failed) and data.scores else None
    spent = completed or failed or _answer(lines) or p.Answer(output="")
    last = closing or (lines[-1].event if lines else None)
    return AttemptResult(
        state=(lines[-1].phase or "") if lines else "unopened",
        verdict=completed.verdict if completed else None,
        score=completed.score if completed else None,
        scores={one.evaluator: one.score for one in _scores(lines, completed or failed)},
        tokens=spent.usage.total,
        cost_usd=spent.cost_usd,
        latency_ms=spent.latency_ms,
        exit_code=completed.exit_code if completed else None,
        error=describe(closing) if closing and not completed else None,
        bridged=any(bridge.attempt == number for bridge in history.bridges),
        took=_took(lines if attempt else history.lines, last),
        output=_output(lines, completed),
    )


def _answer(lines: list[TimelineEntry]) -> p.Answer | None:
    answers = [line.event.data for line in lines if isinstance(line.event.data, p.Responded)]
    known = [line.event.data.answer for line in lines if isinstance(line.event.data, p.Queued)]
    return next((answer for answer in (*answers, *known) if answer), None)


def _scores(lines: list[TimelineEntry], closing: p.Completed | p.Failed | None) -> tuple[p.Score, ...]:
    named = closing.scores if closing else ()
    return named or tuple(line.event.data for line in lines if isinstance(line.event.data, p.Scored))


def _output(lines: list[TimelineEntry], completed: p.Completed | None) -> str | None:
    if completed and completed.output is not None:
        return completed.output
    answer = _answer(lines)
    return answer.output if answer else None


def _took(lines: Sequence[TimelineEntry], last: Event | None) -> timedelta | None:
    return last.occurred_at - lines[0].event.occurred_at if last and lines else None
