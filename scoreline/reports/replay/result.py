"""What an attempt, or an evaluation by its newest attempt, came to. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

from eventlog import payloads as p
from eventlog.events import Event
from eventlog.lifecycle import CLOSING_TYPES
from scoreline.reports.replay.lines import Fate, Line
from scoreline.reports.replay.story import Story
from scoreline.reports.replay.wording import describe


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a story in figures; None where there is no such thing."""

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


def result(story: Story, attempt: int | None = None) -> Result:
    """Say what a story came to, or one attempt of it."""
    number = story.cursor.attempt if attempt is None else attempt
    lines = [n for n in story.lines if n.event.attempt == number and n.fate in {Fate.APPLIED, Fate.LATE}]
    closing = next((n.event for n in lines if n.event.type in CLOSING_TYPES), None)
    data = closing.data if closing else None
    completed = data if isinstance(data, p.Completed) else None
    failed = data if isinstance(data, p.Failed) and data.scores else None
    spent = completed or failed or _answer(lines) or p.Answer(output="")
    last = closing or (lines[-1].event if lines else None)
    return Result(
        state=(lines[-1].phase or "") if lines else "unopened",
        verdict=completed.verdict if completed else None,
        score=completed.score if completed else None,
        scores={one.evaluator: one.score for one in _scores(lines, completed or failed)},
        tokens=spent.usage.total,
        cost_usd=spent.cost_usd,
        latency_ms=spent.latency_ms,
        exit_code=completed.exit_code if completed else None,
        error=describe(closing) if closing and not completed else None,
        bridged=any(bridge.attempt == number for bridge in story.bridges),
        took=_took(lines if attempt else story.lines, last),
        output=_output(lines, completed),
    )


def _answer(lines: list[Line]) -> p.Answer | None:
    answers = [line.event.data for line in lines if isinstance(line.event.data, p.Responded)]
    known = [line.event.data.answer for line in lines if isinstance(line.event.data, p.Queued)]
    return next((answer for answer in (*answers, *known) if answer), None)


def _scores(lines: list[Line], closing: p.Completed | p.Failed | None) -> tuple[p.Score, ...]:
    named = closing.scores if closing else ()
    return named or tuple(line.event.data for line in lines if isinstance(line.event.data, p.Scored))


def _output(lines: list[Line], completed: p.Completed | None) -> str | None:
    if completed and completed.output is not None:
        return completed.output
    answer = _answer(lines)
    return answer.output if answer else None


def _took(lines: Sequence[Line], last: Event | None) -> timedelta | None:
    return last.occurred_at - lines[0].event.occurred_at if last and lines else None
