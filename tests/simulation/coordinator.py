"""A naive coordinator: accepts, opens attempts in Postgres first, then publishes, and looks after the rest.

It stands where the real one will: all it knows it asks of its ports, all it must not forget is in
`Ledger`, which survives it, and what to do next about an evaluation is one pure decision.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from eventlog import payloads as p
from eventlog.codec import Entry, RawEntry, Refused, decode_body, encode, make_event, read_entry
from eventlog.events import EventKey
from eventlog.keys import shard_of
from eventlog.lifecycle import ENDED, FINAL, SETTLED
from eventlog.log import Append, LogUnavailable, Record
from eventlog.timeline import Cursor, unfold
from projections.change import Row, Stored, fold
from projections.tables import TablesUnavailable
from tests.builders import CASE
from tests.simulation.ports import DistantLog, DistantTables
from tests.simulation.process import Life, Process
from tests.simulation.reconcile import Glance, Next, reconcile
from tests.simulation.server import Task
from tests.simulation.world import BATCH, World

Opening = p.Queued | p.Cancelled | p.TimedOut
REASONS = {Next.RETRY: p.OpeningReason.RETRY, Next.LOST: p.OpeningReason.LOST}


@dataclass(slots=True)
class Ledger:
    """What the coordinator's own tables hold."""

    submissions: dict[str, float] = field(default_factory=dict)
    """Evaluations, and when each is submitted."""
    requests: dict[str, tuple[float, Opening]] = field(default_factory=dict)
    """What people ask for: from when on, and what."""
    unpublished: dict[str, None] = field(default_factory=dict)


class Coordinator(Process):
    """The only one who opens attempts."""

    def __init__(self, world: World, name: str, ledger: Ledger) -> None:
        self.ledger = ledger
        super().__init__(world, name)

    async def main(self, life: Life) -> None:
        """Go round after round; what failed in one is tried again in the next."""
        one = _Rounds(life, self.ledger)
        while True:
            try:
                await one.go_round()
            except (LogUnavailable, TablesUnavailable) as error:
                self.world.tell(life.name, f"the round was interrupted: {error}")
            await asyncio.sleep(self.world.random.uniform(0.4, 1.2))


class _Rounds:
    """What one life of a coordinator does, and what it has seen."""

    def __init__(self, life: Life, ledger: Ledger) -> None:
        self.world, self.life, self.ledger = life.world, life, ledger
        self.log, self.tables = DistantLog(life), DistantTables(life)
        self.epochs: dict[int, tuple[str, float]] = {}

    async def go_round(self) -> None:
        """Accept what is new, do what was asked for, then look after what has not moved."""
        due = [key for key, at in self.ledger.submissions.items() if at <= self.world.clock()]
        rows = await self.tables.rows(due)
        for key in due:
            if key not in rows:
                await self.accept(key)
        await self._serve(rows)
        for key in list(self.ledger.unpublished):
            await self._publish_ending(key)
        await self._look_after(await self.tables.open_evaluations(after="", unchanged_for=0.8, limit=1_000))

    async def accept(self, key: str) -> None:
        """Commit a new evaluation, then publish it."""
        month = (await self.tables.months([BATCH]))[BATCH]
        blank = Row(key, BATCH, month, Cursor())
        await self._open(blank, p.Queued(case=CASE), exists=False)

    async def _serve(self, rows: Mapping[str, Row]) -> None:
        """Cancel, time out or reopen, where that is still possible."""
        for key, (at, opening) in list(self.ledger.requests.items()):
            row = rows.get(key)
            if row is None or at > self.world.clock():
                continue
            by_operator = isinstance(opening, p.Queued)
            if row.cursor.phase in (FINAL if by_operator else ENDED):
                self.ledger.requests.pop(key, None)
            elif row.cursor.phase in SETTLED or not by_operator:
                self.world.seen["reopened" if by_operator else "ended from outside"] += 1
                await self._open(row, opening)

    async def _look_after(self, keys: Sequence[str]) -> None:
        rows = {k: row for k, row in (await self.tables.rows(keys)).items() if row.batch_id == BATCH}
        if not rows:
            return
        streams = await self.log.read(list(rows), limit=1_000)
        stored = await self.tables.stored(list(rows.values()))
        for row, raw in zip(rows.values(), streams, strict=True):
            epoch, held = await self._epoch(row.evaluation_id)
            seen = self._glance(row, stored[row.evaluation_id], raw, epoch, held)
            await self._do(reconcile(seen), row, seen)

    def _glance(
        self,
        row: Row,
        stored: Mapping[EventKey, Stored],
        raw: Sequence[RawEntry],
        epoch: str,
        held: float,
    ) -> Glance:
        redis = self.world.redis
        return Glance(
            row,
            {key: decode_body(known.body) for key, known in stored.items()},
            _first_of_each_key(row.evaluation_id, raw),
            epoch,
            held,
            self.world.now(),
            self.world.now_ms(),
            redis.is_live,
            redis.is_on_its_way(Task(row.evaluation_id, row.cursor.attempt)),
        )

    async def _do(self, what: Next, row: Row, seen: Glance) -> None:
        if what is Next.WAIT:
            return
        self.world.tell(self.life.name, f"{row.evaluation_id} at {row.cursor}: {what}")
        self.world.seen[what] += 1
        if what in REASONS:
            await self._open(row, p.Queued(case=CASE, reason=REASONS[what]))
        elif what is Next.PUBLISH:
            opening = seen.logged[row.cursor.attempt, 0]
            await self._publish(Record(opening, encode(opening)))
        else:
            self.world.redis.tasks.append(Task(row.evaluation_id, row.cursor.attempt))

    async def _epoch(self, key: str) -> tuple[str, float]:
        """Return the epoch, and for how long this coordinator knows it to have held."""
        epoch = await self.log.epoch(key)
        shard = shard_of(key, self.log.shards)
        known, since = self.epochs.get(shard, ("", 0.0))
        if known != epoch:
            since = self.world.clock()
            self.epochs[shard] = epoch, since
        return epoch, self.world.clock() - since

    async def _open(self, row: Row, opening: Opening, *, exists: bool = True) -> None:
        """Open the next attempt: one transaction on the row as it was read, then the log, then the task."""
        if isinstance(opening, p.Queued):
            opening = replace(opening, epoch=await self.log.epoch(row.evaluation_id))
        else:
            self.ledger.unpublished[row.evaluation_id] = None
        event = make_event(
            opening,
            evaluation_id=row.evaluation_id,
            batch_id=BATCH,
            attempt=row.cursor.attempt + 1,
            sequence=0,
            occurred_at=self.world.now(),
            source=self.life.name,
        )
        record = Record(event, encode(event))
        walked = unfold(row.cursor, [Entry(b"0-0", event, record.body)])
        change = fold(row, shard_of(row.evaluation_id, self.log.shards), walked, exists=exists)
        change.head = row.head  # it is in no stream yet
        committed = await self.tables.commit([change])
        if row.evaluation_id not in committed.lost and isinstance(opening, p.Queued):
            await self._publish(record)

    async def _publish(self, record: Record) -> None:
        """Put an opening into the log of the epoch it was made in, and only then its task into a queue."""
        event = record.event
        epoch = event.data.epoch if isinstance(event.data, p.Queued) else ""
        [reply] = await self.log.append([Append(event.evaluation_id, [record], epoch)])
        if reply.answers[0].on_record and isinstance(event.data, p.Queued):
            self.world.redis.tasks.append(Task(event.evaluation_id, event.attempt))

    async def _publish_ending(self, key: str) -> None:
        """Fence off whoever still works on what has been ended in Postgres."""
        row = (await self.tables.rows([key]))[key]
        stored = (await self.tables.stored([row]))[key][row.cursor.attempt, 0]
        event = decode_body(stored.body)
        if not isinstance(event.data, p.Queued):
            await self._publish(Record(event, stored.body))
        self.ledger.unpublished.pop(key, None)


def _first_of_each_key(key: str, raw: Sequence[RawEntry]) -> dict[EventKey, Entry]:
    first: dict[EventKey, Entry] = {}
    for entry in raw:
        read = read_entry(key, entry)
        if not isinstance(read, Refused):
            first.setdefault(read.key, read)
    return first
