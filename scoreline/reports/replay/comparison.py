"""The comparison of two evaluations or attempts: entries aligned by sequence, and their results. Pure."""

from collections.abc import Iterator
from dataclasses import dataclass, fields
from difflib import unified_diff
from typing import Any

from eventlog import payloads as p
from eventlog.events import EventKey
from scoreline.command_error import CommandError
from scoreline.formatting import printable
from scoreline.reports.replay.attempt_result import AttemptResult, result
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.timeline_entry import REPEATS, TimelineEntry

UNREMARKABLE = frozenset({"nonce", "epoch", "process", "retry_at", "latency_ms"})
"""Fields that differ between any two runs."""
DIFFED_LINES = 2_000
SHOWN_LINES = 60

Named = tuple[EvaluationHistory, int | None]


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """A whole evaluation, or one of its attempts."""

    history: EvaluationHistory
    attempt: int | None

    @property
    def label(self) -> str:
        """The evaluation id, with `@ATTEMPT` for one attempt."""
        name = self.history.evaluation_id
        return name if self.attempt is None else f"{name}@{self.attempt}"

    @property
    def lines(self) -> dict[EventKey, TimelineEntry]:
        """The entries by attempt and sequence; by sequence alone for one attempt."""
        return {
            (line.event.attempt if self.attempt is None else 0, line.event.sequence): line
            for line in self.history.lines
            if line.disposition not in REPEATS and self.attempt in {None, line.event.attempt}
        }


@dataclass(frozen=True, slots=True)
class AlignedEntries:
    """The entries with the same key on both sides, and the fields that differ."""

    key: EventKey
    left: TimelineEntry | None
    right: TimelineEntry | None
    differs: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class HistoryComparison:
    """Two sides with their aligned entries and their results."""

    left: ComparedSide
    right: ComparedSide
    pairs: tuple[AlignedEntries, ...]
    results: tuple[AttemptResult, AttemptResult]
    output: tuple[str, ...]
    """The unified diff of the outputs; empty where they are equal."""


def sides(left: Named, right: Named) -> tuple[ComparedSide, ComparedSide]:
    """Return both sides: where one names an attempt, the other defaults to its last attempt."""
    (one, first), (other, second) = left, right
    if first is None and second is not None:
        first = _last(one, besides=second if one.evaluation_id == other.evaluation_id else None)
    elif second is None and first is not None:
        second = _last(other, besides=first if one.evaluation_id == other.evaluation_id else None)
    return ComparedSide(one, first), ComparedSide(other, second)


def _last(history: EvaluationHistory, *, besides: int | None) -> int:
    numbers = [attempt.number for attempt in history.attempts if attempt.number != besides]
    if not numbers:
        raise CommandError(f"{printable(history.evaluation_id)} has no other attempt to compare with.")
    return numbers[-1]


def compare(left: ComparedSide, right: ComparedSide) -> HistoryComparison:
    """Align two sides, and list the fields that differ."""
    ours, theirs = left.lines, right.lines
    pairs = tuple(_pair(key, ours.get(key), theirs.get(key)) for key in sorted(ours.keys() | theirs.keys()))
    results = result(left.history, left.attempt), result(right.history, right.attempt)
    before, after = (each.output or "" for each in results)
    diff = _lines_of_diff(before, after, left.label, right.label)
    return HistoryComparison(left, right, pairs, results, tuple(diff))


def _pair(key: EventKey, left: TimelineEntry | None, right: TimelineEntry | None) -> AlignedEntries:
    return AlignedEntries(key, left, right, tuple(_differences(left, right)))


def _differences(left: TimelineEntry | None, right: TimelineEntry | None) -> Iterator[str]:
    if left is None or right is None:
        yield "right only" if left is None else "left only"
        return
    if left.event.type != right.event.type:
        yield "event"
    if left.disposition is not right.disposition:
        yield "verdict"
    if left.event.type == right.event.type:
        yield from _fields(left.event.data, right.event.data)


def _fields(left: p.AnyPayload, right: p.AnyPayload) -> Iterator[str]:
    for field in fields(left):
        one: Any = getattr(left, field.name)
        if field.name not in UNREMARKABLE and one != getattr(right, field.name):
            yield field.name


def _lines_of_diff(before: str, after: str, left: str, right: str) -> Iterator[str]:
    """Return the unified diff of two outputs; only the first lines of long ones."""
    one, other = before.splitlines()[:DIFFED_LINES], after.splitlines()[:DIFFED_LINES]
    lines = list(unified_diff(one, other, left, right, lineterm="", n=2))
    yield from lines[:SHOWN_LINES]
    if len(lines) > SHOWN_LINES:
        yield f"… and {len(lines) - SHOWN_LINES} lines more"
    elif before != after and not lines:
        yield "… they differ in line ends, or beyond the lines that are compared"
