"""A deliberately naive reader: one entry at a time, every lookup a search, no fast path.

It defines the replay rules in the shortest form; only the types of its result are `eventlog.timeline`'s.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from eventlog import lifecycle as life
from eventlog.codec import Entry
from eventlog.events import EventKey
from eventlog.timeline import PAID_TYPES, Cursor, Disposition, ReplayResult, replay

CLOSED = {"completed", "retrying", "failed", "timed_out", "cancelled"}
FINAL = {"completed", "cancelled"}
UNREAD = Cursor()


@dataclass
class NaiveReader:
    """Reads entries as they arrive; an event without a disposition is waiting."""

    attempt: int = 0
    sequence: int = -1
    phase: str = "unopened"
    verdicts: dict[EventKey, Disposition] = field(default_factory=dict)
    waiting: dict[EventKey, Entry] = field(default_factory=dict)
    refused: set[int] = field(default_factory=set)

    def read(self, entries: Iterable[Entry]) -> "NaiveReader":
        for entry in entries:
            if entry.key not in self.verdicts and entry.key not in self.waiting:
                self.waiting[entry.key] = entry
                while self._judge_one():
                    pass
        return self

    def _judge_one(self) -> bool:
        for key, entry in sorted(self.waiting.items()):
            if verdict := self._verdict(entry):
                self.verdicts[key] = verdict
                del self.waiting[key]
                return True
        return False

    def _verdict(self, entry: Entry) -> Disposition | None:
        attempt, sequence = entry.key
        if attempt < self.attempt:
            ended = self.sequence == 0 and self.phase in life.ENDED
            return Disposition.LATE if ended and entry.event.type in PAID_TYPES else Disposition.STALE
        if attempt > self.attempt:
            if sequence == 0:
                return self._open(entry)
            return Disposition.REJECTED if self.phase in FINAL or attempt in self.refused else None
        if self.phase in CLOSED:
            return Disposition.REJECTED
        return self._continue(entry) if sequence == self.sequence + 1 else None

    def _open(self, entry: Entry) -> Disposition:
        try:
            self.phase = life.reopen(
                life.Phase(self.phase), entry.event.data, sequence=entry.event.sequence
            )
        except life.IllegalTransition:
            self.refused.add(entry.event.attempt)
            return Disposition.REJECTED
        self.attempt, self.sequence = entry.key
        return Disposition.APPLIED

    def _continue(self, entry: Entry) -> Disposition:
        self.sequence = entry.event.sequence
        try:
            self.phase = life.advance(
                life.Phase(self.phase), entry.event.type, sequence=entry.event.sequence
            )
        except life.IllegalTransition:
            return Disposition.REJECTED
        return Disposition.APPLIED


@dataclass
class IncrementalReader:
    """Reads with `replay` as the storage worker does: the stream so far, without the events it already has.

    A rejected opening is kept: without it, the events that follow would have no attempt to belong to.
    """

    cursor: Cursor = UNREAD
    verdicts: dict[EventKey, Disposition] = field(default_factory=dict)
    applied: list[EventKey] = field(default_factory=list)

    def read(self, so_far: Sequence[Entry], *, bridge_until_ms: int | None = None) -> ReplayResult:
        fresh = [entry for entry in so_far if not self._is_covered(entry.key)]
        walked = replay(self.cursor, fresh, bridge_until_ms=bridge_until_ms)
        for step in walked.steps:
            if self.verdicts.setdefault(step.entry.key, step.disposition) is Disposition.APPLIED:
                self.applied.append(step.entry.key)
        self.cursor = walked.cursor
        return walked

    def _is_covered(self, key: EventKey) -> bool:
        refused_opening = key[1] == 0 and key[0] > self.cursor.attempt
        return key in self.verdicts and not refused_opening
