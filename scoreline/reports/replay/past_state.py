"""A history cut at a moment of its past: what had arrived by then, and what the log came to. Pure.

The entries that had arrived are walked again. A bridge that had been made by then is a fact: the walk
makes it again, with what it calls missing held back, whatever a clock says of a late original.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from eventlog import payloads as p
from eventlog.codec import Entry
from eventlog.timeline import Bridge, Cursor, Disposition, Gap, ReplayStep, replay
from scoreline.reports.replay.gaps import Bridging, open_gap
from scoreline.reports.replay.history import EvaluationHistory
from scoreline.reports.replay.history_builder import ending, lines_of
from scoreline.reports.replay.moment import Located, Moment, locate
from scoreline.reports.replay.timeline_entry import (
    REPEATS,
    EntryDisposition,
    TimelineEntry,
    arrival_time,
    in_order,
)


@dataclass(frozen=True, slots=True)
class PastState:
    """The state at a moment."""

    at: datetime
    arrived: int
    of: int
    stored: int
    """How many of those that arrived Postgres had recorded by then."""
    cursor: Cursor
    owner: str | None
    answer: TimelineEntry | None
    """The newest entry that puts an answer on record."""
    waiting: tuple[TimelineEntry, ...]


def cut(history: EvaluationHistory, moment: Moment) -> tuple[EvaluationHistory, PastState]:
    """Tell the history as of a moment, and the state it had come to."""
    located = locate(history, moment)
    rank, until = located.rank, located.until
    lines = tuple(line for line in history.lines if line.rank <= rank)
    made = [bridge for bridge in history.bridges if bridge.at <= until]
    known = [line.entry for line in sorted(lines, key=lambda line: line.rank) if _took_its_key(line)]
    retold = _retell(known, made)
    told = {line.entry_id: line for line in lines_of(retold.steps, known)}
    recut = in_order(_as_of(line, told.get(line.entry_id), until) for line in lines)
    refusals = tuple(refusal for refusal in history.refusals if refusal.rank <= rank)
    before = replace(
        history,
        cursor=retold.cursor,
        ahead=None,
        lines=recut,
        bridges=_remade(made, retold.bridges),
        gap=open_gap(retold.gap),
        refusals=refusals,
        refused=len(refusals),
        scorecard=ending(recut, retold.cursor, retold.bridges),
        now=located.at,
    )
    return before, _state(before, located, of=history.arrivals)


def _remade(made: Sequence[Bridging], again: Sequence[Bridge]) -> tuple[Bridging, ...]:
    led_to = {bridge.closing.key for bridge in again}
    return tuple(bridge for bridge in made if bridge.closing_key in led_to)


def _took_its_key(line: TimelineEntry) -> bool:
    return line.disposition not in REPEATS and line.disposition is not EntryDisposition.UNSTORABLE


def _as_of(line: TimelineEntry, told: TimelineEntry | None, until: datetime) -> TimelineEntry:
    """Keep an entry's place, and take what had become of it by then."""
    recorded = line.recorded_at if line.recorded_at and line.recorded_at <= until else None
    if told is None:
        return replace(line, pending=False, recorded_at=recorded)
    note = line.note if told.disposition is line.disposition else told.note
    return replace(told, rank=line.rank, recorded_at=recorded, note=note)


@dataclass(slots=True)
class _Retold:
    cursor: Cursor = field(default_factory=Cursor)
    steps: list[ReplayStep] = field(default_factory=list)
    bridges: list[Bridge] = field(default_factory=list)
    gap: Gap | None = None

    def walk(self, entries: Sequence[Entry], *, to: Bridging | None = None) -> None:
        """Walk on, and where a known bridge begins make that one."""
        refused = frozenset(
            step.entry.event.attempt
            for step in self.steps
            if step.disposition is Disposition.REJECTED and step.entry.event.sequence == 0
        )
        walked = replay(self.cursor, entries, rejected_attempts=refused)
        closing = walked.gap.closing if walked.gap else None
        if to and walked.gap and closing and closing.key == to.closing_key:
            until = walked.gap.since_ms
            walked = replay(self.cursor, entries, bridge_until_ms=until, rejected_attempts=refused)
        self.cursor, self.gap = walked.cursor, walked.gap
        self.steps += walked.steps
        self.bridges += walked.bridges


def _retell(entries: Sequence[Entry], bridges: Sequence[Bridging]) -> _Retold:
    retold = _Retold()
    rest = list(entries)
    for bridge in bridges:
        retold.walk(_before(bridge, rest), to=bridge)
        judged = {step.entry.key for step in retold.steps}
        rest = [entry for entry in rest if entry.key not in judged]
    retold.walk(rest)
    return retold


def _before(bridge: Bridging, entries: Sequence[Entry]) -> list[Entry]:
    """Keep what was there when a bridge was made: before the next attempt, without what was missing."""
    there = []
    for entry in entries:
        attempt, sequence = entry.key
        if attempt > bridge.attempt and sequence == 0:
            break
        swallowed = attempt == bridge.attempt and any(sequence in hole for hole in bridge.missing)
        # Of a lower attempt, what came after the bridge found its attempt replaced.
        replaced = attempt < bridge.attempt and arrival_time(entry.id) >= bridge.at
        if attempt <= bridge.attempt and not swallowed and not replaced:
            there.append(entry)
    return there


def _state(history: EvaluationHistory, located: Located, *, of: int) -> PastState:
    current = [attempt for attempt in history.attempts if attempt.number == history.cursor.attempt]
    return PastState(
        located.at,
        located.rank,
        of,
        sum(1 for line in history.lines if line.recorded_at),
        history.cursor,
        current[0].owner if current else None,
        _answer(history),
        tuple(line for line in history.lines if line.disposition is EntryDisposition.WAITING),
    )


def _answer(history: EvaluationHistory) -> TimelineEntry | None:
    """Find the newest entry by which an answer is on record, of whichever attempt."""
    with_answer = [
        line for line in history.lines if line.disposition not in REPEATS and _carries_answer(line)
    ]
    return with_answer[-1] if with_answer else None


def _carries_answer(line: TimelineEntry) -> bool:
    match line.event.data:
        case p.Responded():
            return True
        case p.Queued(answer=answer):
            return answer is not None
        case p.Completed(output=output):
            return output is not None
        case _:
            return False
