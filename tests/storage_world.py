"""A log and tables in memory under one clock: the world a storage worker lives in, without servers."""

from datetime import timedelta
from random import Random
from typing import Any

from eventlog.events import Event, EventKey
from eventlog.log import LogReader
from eventlog.memory import MemoryEventLog, _Stream
from eventlog.timeline import Cursor
from projections.store.contract import ProjectionStore
from projections.store.memory import MemoryStore
from storage_worker.gaps import GapBreaker, GapPolicy
from storage_worker.storage import Storage
from tests.builders import EVALUATION, FIRST_ARRIVAL_MS, event, raw_entry
from tests.disordered import arrivals, lives

GAP_TIMEOUT = timedelta(seconds=30)
GAP_WARNING = timedelta(seconds=5)
GAP_POLICY = GapPolicy(GAP_TIMEOUT, GAP_WARNING)


class World:
    """Time moves only by `advance`; events are put into streams as a plain XADD does, past every fence."""

    def __init__(self) -> None:
        self.now_ms = FIRST_ARRIVAL_MS
        self.log = MemoryEventLog(lambda: self.now_ms)
        self.tables = MemoryStore(lambda: self.now_ms / 1000)

    def storage(
        self,
        *,
        log: LogReader | None = None,
        tables: ProjectionStore | None = None,
        gap_policy: GapPolicy = GAP_POLICY,
        breaker: GapBreaker | None = None,
    ) -> Storage:
        """Make a worker's storage, over other ports if given."""
        return Storage(log or self.log, tables or self.tables, gap_policy, breaker=breaker)

    def xadd(self, *events: Event, **instead: bytes) -> None:
        """Put events into their streams, in this order, without wake-ups."""
        for each in events:
            _, fields = raw_entry(each, **instead)
            self.xadd_fields(each.evaluation_id, *fields)

    def xadd_fields(self, evaluation_id: str, *fields: bytes) -> None:
        """Put any fields into a stream."""
        stream = self.log._streams.setdefault(evaluation_id, _Stream())
        stream.entries.append((self.log._next_id(), list(fields)))

    def wait(self, time: timedelta) -> None:
        """Let time pass, on all clocks."""
        self.now_ms += int(time.total_seconds() * 1000)

    def verdicts(self, evaluation_id: str = EVALUATION) -> dict[EventKey, str]:
        """Return the dispositions of an evaluation's events."""
        return {
            (attempt, sequence): kept.verdict
            for (stored_of, attempt, sequence), kept in self.tables.events.items()
            if stored_of == evaluation_id
        }

    def cursor(self, evaluation_id: str = EVALUATION) -> Cursor:
        """Return how far an evaluation has come."""
        return self.tables.evaluations[evaluation_id].row.cursor

    def reasons(self) -> list[str]:
        """Return the reasons of the quarantine."""
        return sorted(bad.reason for bad in self.tables.quarantined.values())


async def store_badly(random: Random, world: World, worker: Storage, *, most: int = 4) -> None:
    """Let evaluations live through disorder, loss and nonsense; the reader bridges, early and late."""
    events = arrivals(random, lives(random, most=most))
    lost = set(random.sample(range(len(events)), len(events) // 6))
    ids = sorted({each.evaluation_id for each in events})
    for number, each in enumerate(events):
        if number not in lost:
            world.xadd(each)
        if each.sequence and random.random() < 0.05:
            world.xadd(event("scored", **_place(each)))
        if random.random() < 0.3:
            world.wait(random.choice([timedelta(seconds=1), GAP_TIMEOUT * 2]))
            await worker.store(random.sample(ids, random.randint(1, len(ids))))
    world.xadd(*(events[number] for number in sorted(lost) if random.random() < 0.5))
    world.wait(GAP_TIMEOUT * 2)
    await worker.store(ids)
    await worker.store(ids)


def _place(taken: Event) -> dict[str, Any]:
    """Return the envelope of an event, for another one in its place."""
    return {name: getattr(taken, name) for name in ("evaluation_id", "batch_id", "attempt", "sequence")}
