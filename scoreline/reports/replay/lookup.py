"""Resolves the argument of `scoreline replay`: an id, or `ID@2` for one attempt; lists near ids."""

from dataclasses import dataclass
from difflib import SequenceMatcher

from scoreline.command_error import CommandError
from scoreline.formatting import printable
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.sources import Sources

NEAREST = 5
MIN_SIMILARITY = 0.5
LAST_CHARACTER = chr(0x10FFFF)


@dataclass(frozen=True, slots=True)
class ResolvedEvaluation:
    """The history of an evaluation, and the attempt if one was named."""

    history: EvaluationHistory
    attempt: int | None = None


async def look_up(sources: Sources, text: str) -> ResolvedEvaluation | None:
    """Return the evaluation; an id that contains an @ takes precedence over `ID@ATTEMPT`."""
    _check_encodable(text)
    history = await sources.history(text)
    if history.is_known:
        return ResolvedEvaluation(history)
    evaluation_id, at, number = text.rpartition("@")
    if not (at and evaluation_id and number.isdecimal()):
        return None
    history = await sources.history(evaluation_id)
    return ResolvedEvaluation(with_attempt(history, int(number)), int(number)) if history.is_known else None


async def find(sources: Sources, text: str) -> ResolvedEvaluation:
    """Return the evaluation; raises `CommandError` with the nearest ids where there is none."""
    resolved = await look_up(sources, text)
    if resolved is None:
        raise await unknown(sources, text)
    return resolved


def with_attempt(history: EvaluationHistory, number: int) -> EvaluationHistory:
    """Return the history if it has this attempt; raises `CommandError` otherwise."""
    numbers = [attempt.number for attempt in history.attempts]
    if number in numbers:
        return history
    known = ", ".join(str(number) for number in numbers) or "none"
    raise CommandError(f"{printable(history.evaluation_id)} has no attempt {number}; there is: {known}.")


async def unknown(sources: Sources, text: str) -> CommandError:
    """Return the problem that an id is unknown, with the nearest ids."""
    queried = [
        name for name, where in (("Postgres", sources.postgres), ("Redis", sources.redis)) if where.answered
    ]
    message = f"No evaluation {printable(text)} in {' or '.join(queried)}."
    if await sources.is_batch(text):
        return CommandError(
            f"{message} It is a batch: scoreline replay --batch {printable(text)} --summary"
        )
    near = nearest(text, await sources.near(probes(text)))
    return CommandError(
        f"{message} Nearest: {', '.join(printable(key) for key in near)}" if near else message
    )


def probes(text: str) -> list[str]:
    """Return positions in the order of ids near which to search: the text and its prefixes."""
    lengths = {len(text) * quarter // 4 for quarter in (1, 2, 3)}
    beginnings = [text[:length] for length in sorted(lengths) if length]
    variants = [text, text.lower(), text.upper(), *beginnings]
    return list(dict.fromkeys([*variants, *(beginning + LAST_CHARACTER for beginning in beginnings)]))


def nearest(text: str, candidates: list[str]) -> list[str]:
    """Return the ids most similar to the text, best first; dissimilar ones are left out."""
    target = text.casefold()
    similarity = {key: SequenceMatcher(None, target, key.casefold()).ratio() for key in candidates}
    ranked = sorted(candidates, key=lambda key: (-similarity[key], key))
    return [key for key in ranked if similarity[key] >= MIN_SIMILARITY][:NEAREST]


def _check_encodable(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise CommandError(f"{printable(text)} is no id: it is not valid UTF-8.") from None
