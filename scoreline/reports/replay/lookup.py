"""Which evaluation was meant: an id, `ID@2` for one of its attempts, or nearly an id."""

from dataclasses import dataclass
from difflib import SequenceMatcher

from scoreline.formatting import printable
from scoreline.problem import Problem
from scoreline.reports.replay.sources import Sources
from scoreline.reports.replay.story import Story

NEAREST = 5
LIKENESS = 0.5
LAST_CHARACTER = chr(0x10FFFF)


@dataclass(frozen=True, slots=True)
class Meant:
    """An evaluation, and the attempt if one was named."""

    story: Story
    attempt: int | None = None


async def look_up(sources: Sources, text: str) -> Meant | None:
    """Find what was meant; an id that really contains an @ wins."""
    _check_encodable(text)
    story = await sources.story(text)
    if story.is_known:
        return Meant(story)
    whose, at, number = text.rpartition("@")
    if not (at and whose and number.isdecimal()):
        return None
    story = await sources.story(whose)
    return Meant(with_attempt(story, int(number)), int(number)) if story.is_known else None


async def find(sources: Sources, text: str) -> Meant:
    """Find what was meant, or raise a problem that names what is near it."""
    meant = await look_up(sources, text)
    if meant is None:
        raise await unknown(sources, text)
    return meant


def with_attempt(story: Story, number: int) -> Story:
    """Return the story if it has this attempt."""
    numbers = [attempt.number for attempt in story.attempts]
    if number in numbers:
        return story
    there = ", ".join(str(number) for number in numbers) or "none"
    raise Problem(f"{printable(story.evaluation_id)} has no attempt {number}; there is: {there}.")


async def unknown(sources: Sources, text: str) -> Problem:
    """Say that nobody knows an id, and which ones may have been meant."""
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
