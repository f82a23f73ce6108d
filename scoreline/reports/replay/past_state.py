"""A history cut at an earlier moment: the entries that had arrived, and the state they led to. Pure.

The entries that had arrived by then are replayed. A bridge that had been recorded by then is replayed as
recorded: its missing sequences are held back, even if a late original has an earlier arrival time.
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
    """How many of the arrived entries Postgres had recorded by then."""
    cursor: Cursor
    owner: str | None
    answer: TimelineEntry | None
    """The newest entry that carries an answer."""
    waiting: tuple[TimelineEntry, ...]


def cut(history: EvaluationHistory, moment: Moment) -> tuple[EvaluationHistory, PastState]:
    """Return the history as of a moment, and the state at that moment."""
    located = locate(history, moment)
    rank, until = located.rank, located.until
    lines = tuple(line for line in history.lines if line.rank <= rank)
    recorded = [bridge for bridge in history.bridges if bridge.at <= until]
    known = [line.entry for line in sorted(lines, key=lambda line: line.rank) if _is_replayable(line)]
    replayed = _replay(known, recorded)
    by_id = {line.entry_id: line for line in lines_of(replayed.steps, known)}
    lines_then = in_order(_as_of(line, by_id.get(line.entry_id), until) for line in lines)
    refusals = tuple(refusal for refusal in history.refusals if refusal.rank <= rank)
    before = replace(
        history,
        cursor=replayed.cursor,
        ahead=None,
        lines=lines_then,
        bridges=_still_bridged(recorded, replayed.bridges),
        gap=open_gap(replayed.gap),
        refusals=refusals,
        refused=len(refusals),
        scorecard=ending(lines_then, replayed.cursor, replayed.bridges),
        now=located.at,
    )
    return before, _state(before, located, of=history.arrivals)


def _still_bridged(recorded: Sequence[Bridging], replayed: Sequence[Bridge]) -> tuple[Bridging, ...]:
    closings = {bridge.closing.key for bridge in replayed}
    return tuple(bridge for bridge in recorded if bridge.closing_key in closings)


def _is_replayable(line: TimelineEntry) -> bool:
    return line.disposition not in REPEATS and line.disposition is not EntryDisposition.UNSTORABLE


def _as_of(line: TimelineEntry, replayed: TimelineEntry | None, until: datetime) -> TimelineEntry:
    """Return an entry with its rank, and the disposition it had by then."""
    recorded = line.recorded_at if line.recorded_at and line.recorded_at <= until else None
    if replayed is None:
        return replace(line, pending=False, recorded_at=recorded)
    note = line.note if replayed.disposition is line.disposition else replayed.note
    return replace(replayed, rank=line.rank, recorded_at=recorded, note=note)


@dataclass(slots=True)
class _PartialReplay:
    cursor: Cursor = field(default_factory=Cursor)
    steps: list[ReplayStep] = field(default_factory=list)
    bridges: list[Bridge] = field(default_factory=list)
    gap: Gap | None = None

    def advance(self, entries: Sequence[Entry], *, to: Bridging | None = None) -> None:
        """Replay entries from the cursor, and bridge the gap of `to` where it is reached."""
        refused = frozenset(
            step.entry.event.attempt
            for step in self.steps
            if step.disposition is Disposition.REJECTED and step.entry.event.sequence == 0
        )
        result = replay(self.cursor, entries, rejected_attempts=refused)
        closing = result.gap.closing if result.gap else None
        if to and result.gap and closing and closing.key == to.closing_key:
            until = result.gap.since_ms
            result = replay(self.cursor, entries, bridge_until_ms=until, rejected_attempts=refused)
        self.cursor, self.gap = result.cursor, result.gap
        self.steps += result.steps
        self.bridges += result.bridges


def _replay(entries: Sequence[Entry], bridges: Sequence[Bridging]) -> _PartialReplay:
    partial = _PartialReplay()
    rest = list(entries)
    for bridge in bridges:
        partial.advance(_before(bridge, rest), to=bridge)
        done = {step.entry.key for step in partial.steps}
        rest = [entry for entry in rest if entry.key not in done]
    partial.advance(rest)
    return partial


def _before(bridge: Bridging, entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries that preceded a bridge: before the next attempt, without the missing ones."""
    preceding = []
    for entry in entries:
        attempt, sequence = entry.key
        if attempt > bridge.attempt and sequence == 0:
            break
        is_missing = attempt == bridge.attempt and any(sequence in part for part in bridge.missing)
        # Entries of a lower attempt that arrived after the bridge are stale.
        replaced = attempt < bridge.attempt and arrival_time(entry.id) >= bridge.at
        if attempt <= bridge.attempt and not is_missing and not replaced:
            preceding.append(entry)
    return preceding


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
    """Return the newest entry of any attempt that carries an answer."""
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
