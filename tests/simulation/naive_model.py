"""What Redis and Postgres hold, as a dict of lists: no index, no fast path, nothing remembered twice.

`NaiveReader` (tests/unit/eventlog/timeline_model.py) reads entries one by one, in order of arrival; here
it also bridges gaps, and has a stream to read and a table of its own.
"""

from dataclasses import dataclass, field

from eventlog.codec import Entry
from eventlog.events import EventKey
from eventlog.timeline import Disposition, arrival_ms
from tests.unit.eventlog.timeline_model import CLOSED, FINAL, NaiveReader

ENDED = CLOSED - {"retrying"}
OWNERS_CLOSING = CLOSED - {"cancelled"}


@dataclass
class NaiveTable(NaiveReader):
    """What Postgres has of one evaluation: a verdict for each key, and where the history stands."""

    is_known: bool = False
    bridges: int = 0
    openings: int = 0
    bodies: dict[EventKey, bytes] = field(default_factory=dict)
    contradictions: set[bytes] = field(default_factory=set)
    """Conflicting events under a key that is taken: kept apart, once each."""

    def look(self, stream: list[Entry], *, ripe_ms: int) -> None:
        """Read a stream from its beginning, and step over what has waited for too long."""
        self.is_known = self.is_known or bool(stream)
        self.waiting.clear()
        self.read(stream)
        first = dict(self.bodies)
        self.contradictions |= {e.body for e in stream if first.setdefault(e.key, e.body) != e.body}
        while closing := self._beyond_a_ripe_hole(ripe_ms):
            self.bridges += 1
            self.verdicts[closing.key] = Disposition.APPLIED
            self.attempt, self.sequence, self.phase = (*closing.key, closing.event.type)
            del self.waiting[closing.key]
            while self._judge_one():
                pass
        self.bodies = {key: first[key] for key in self.verdicts}

    def _beyond_a_ripe_hole(self, ripe_ms: int) -> Entry | None:
        if self.phase in ENDED:
            return None
        attempts = [a for a, _ in self.waiting if a > self.attempt or self.phase not in CLOSED]
        waiting = [e for (a, _), e in sorted(self.waiting.items()) if a == min(attempts)]
        closings = [entry for entry in waiting if entry.event.type in OWNERS_CLOSING]
        is_ripe = any(arrival_ms(entry.id) <= ripe_ms for entry in waiting)
        return closings[0] if closings and is_ripe else None

    def _verdict(self, entry: Entry) -> Disposition | None:
        attempt, sequence = entry.key
        if attempt == self.attempt and sequence < self.sequence:
            return Disposition.LATE
        return super()._verdict(entry)

    def _open(self, entry: Entry) -> Disposition:
        verdict = super()._open(entry)
        reopens = entry.event.attempt > 1 and entry.event.type == "queued"
        self.openings += verdict is Disposition.APPLIED and reopens
        return verdict


@dataclass
class NaiveModel:
    """All evaluations."""

    redis: dict[str, list[Entry]] = field(default_factory=dict)
    postgres: dict[str, NaiveTable] = field(default_factory=dict)

    def submit(self, key: str) -> None:
        """Take in an evaluation."""
        self.redis[key], self.postgres[key] = [], NaiveTable()

    def keys(self, key: str) -> list[EventKey]:
        """List what a stream holds."""
        return [entry.key for entry in self.redis[key]]

    def newest(self, key: str) -> int:
        """Return the highest attempt in a stream."""
        return max((attempt for attempt, _ in self.keys(key)), default=0)

    def may_be_claimed(self, key: str) -> bool:
        """Whether the newest attempt is open, and has no owner."""
        attempt = self.newest(key)
        opened = any(e.key == (attempt, 0) and e.event.type == "queued" for e in self.redis[key])
        return opened and (attempt, 1) not in self.keys(key)

    def is_over(self, key: str) -> bool:
        """Whether Postgres has its end for good."""
        return self.postgres[key].phase in FINAL

    def count(self, phase: str) -> int:
        """Count the evaluations that stand there."""
        return sum(table.is_known and table.phase == phase for table in self.postgres.values())
