"""Which evaluation was resolved: an id, `ID@2` for one of its attempts, or nearly an id."""

from dataclasses import dataclass
from difflib import SequenceMatcher

from scoreline.formatting import printable
from scoreline.problem import Problem
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.sources import Sources

NEAREST = 5
LIKENESS = 0.5
LAST_CHARACTER = chr(0x10FFFF)


@dataclass(frozen=True, slots=True)
class ResolvedEvaluation:
    """An evaluation, and the attempt if one was named."""

    history: EvaluationHistory
    attempt: int | None = None


async def look_up(sources: Sources, text: str) -> ResolvedEvaluation | None:
    """Find what was resolved; an id that really contains an @ wins."""
    _check_encodable(text)
    history = await sources.history(text)
    if history.is_known:
        return ResolvedEvaluation(history)
    whose, at, number = text.rpartition("@")
    if not (at and whose and number.isdecimal()):
        return None
    history = await sources.history(whose)
    return ResolvedEvaluation(with_attempt(history, int(number)), int(number)) if history.is_known else None


async def find(sources: Sources, text: str) -> ResolvedEvaluation:
    """Find what was resolved, or raise a problem that names what is near it."""
    resolved = await look_up(sources, text)
    if resolved is None:
        raise await unknown(sources, text)
    return resolved


def with_attempt(history: EvaluationHistory, number: int) -> EvaluationHistory:
    """Return the history if it has this attempt."""
    numbers = [attempt.number for attempt in history.attempts]
    if number in numbers:
        return history
    there = ", ".join(str(number) for number in numbers) or "none"
    raise Problem(f"{printable(history.evaluation_id)} has no attempt {number}; there is: {there}.")


async def unknown(sources: Sources, text: str) -> Problem:
    """Describe that nobody knows an id, and which ones may have been resolved."""
    asked = [
        name for name, where in (("Postgres", sources.postgres), ("Redis", sources.redis)) if where.answered
    ]
    said = f"No evaluation {printable(text)} in {' or '.join(asked)}."
    if await sources.is_batch(text):
        return Problem(f"{said} It is a batch: scoreline replay --batch {printable(text)} --summary")
    near = nearest(text, await sources.near(probes(text)))
    return Problem(f"{said} Nearest: {', '.join(printable(key) for key in near)}" if near else said)


def probes(text: str) -> list[str]:
    """Name places in the order of ids near which the right one may be: wherever its beginning is right."""
    lengths = {len(text) * quarter // 4 for quarter in (1, 2, 3)}
    beginnings = [text[:length] for length in sorted(lengths) if length]
    variants = [text, text.lower(), text.upper(), *beginnings]
    return list(dict.fromkeys([*variants, *(beginning + LAST_CHARACTER for beginning in beginnings)]))


def nearest(text: str, candidates: list[str]) -> list[str]:
    """Rank ids by how like the text they are, the unlike left out."""
    wanted = text.casefold()
    likeness = {key: SequenceMatcher(None, wanted, key.casefold()).ratio() for key in candidates}
    ranked = sorted(candidates, key=lambda key: (-likeness[key], key))
    return [key for key in ranked if likeness[key] >= LIKENESS][:NEAREST]


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Problem(f"{printable(text)} is no id: it is not valid UTF-8.") from None
