"""The ports as a process sees them: the memory forms, behind an unreliable network."""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import partial

from eventlog.codec import RawEntry
from eventlog.events import EventKey
from eventlog.lifecycle import FINAL
from eventlog.log import Append, AppendResponse, AppendResult, CommitMark, LogUnavailable, Mode
from projections.database.errors import DatabaseUnavailable
from projections.folds.change import Change, EvaluationRow, QuarantineRow, StoredEvent
from projections.store.contract import CommitResult
from tests.simulation.process import Life
from tests.simulation.world import Acknowledgement, Harm


class DistantLog:
    """`EventLog`, with a record of what it acknowledged to its writers."""

    def __init__(self, life: Life) -> None:
        self.shards = life.world.redis.log.shards
        self._life = life
        self._log = life.world.redis.log

    async def epoch(self, evaluation_id: str) -> str:
        """Return an epoch."""
        return await self._life.call("epoch", partial(self._log.epoch, evaluation_id), LogUnavailable)

    async def epochs(self) -> list[str]:
        """Return all epochs."""
        return await self._life.call("epochs", self._log.epochs, LogUnavailable)

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        """Append, and record every response that arrives."""
        bodies = self._life.world.knowledge.bodies
        for call in calls:
            for record in call.records:
                bodies.setdefault((call.evaluation_id, record.event.key), set()).add(record.body)
        what = "append " + "; ".join(map(_described, calls))
        replies, losses = await self._life.call(what, partial(self._watched, calls), LogUnavailable)
        for call, reply in zip(calls, replies, strict=True):
            self._note(call, reply, losses)
        return replies

    async def _watched(self, calls: Sequence[Append]) -> tuple[list[AppendResponse], int]:
        """Append, and check the fencing; returns also how often Redis had been lost."""
        newest = [self._log._alive(call.evaluation_id).newest for call in calls]
        replies = await self._log.append(calls)
        for call, reply, highest in zip(calls, replies, newest, strict=True):
            for record, answer in zip(call.records, reply.results, strict=True):
                passed = answer is AppendResult.OK and record.event.attempt < highest
                if passed and call.mode is not Mode.LATE:
                    what = f"{call.evaluation_id} {record.event.key} passed the fence of attempt {highest}"
                    self._life.world.violate(Harm.VIOLATION, what)
        return replies, self._life.world.redis.losses

    def _note(self, call: Append, reply: AppendResponse, losses: int) -> None:
        world, writer = self._life.world, self._life.name
        world.log_line(writer, f"  {call.evaluation_id}: {' '.join(reply.results)}")
        for record, answer in zip(call.records, reply.results, strict=True):
            world.seen[f"answer {answer}"] += 1
            ack = (
                writer,
                call.evaluation_id,
                record.event.key,
                record.body,
                losses,
                world.clock(),
            )
            if answer.acknowledged:
                world.knowledge.acknowledged.append(Acknowledgement(*ack))
            elif call.mode is Mode.CLAIM:
                world.seen["claim refused"] += 1
            else:
                place = (writer, call.evaluation_id, record.event.attempt)
                world.knowledge.refused.setdefault(place, world.clock())
        if call.mode is Mode.LATE and reply.results[0] is AppendResult.OK:
            world.seen["late answer kept"] += 1
        if call.mode is Mode.TAIL and all(answer.acknowledged for answer in reply.results):
            world.seen["tail put back"] += 1

    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        """Return how far Postgres is."""
        return await self._life.call(
            "committed", partial(self._log.committed, evaluation_ids), LogUnavailable
        )

    async def read(self, evaluation_ids: Sequence[str], *, limit: int) -> list[list[RawEntry]]:
        """Read streams."""
        what = f"read {' '.join(evaluation_ids)}"
        return await self._life.call(
            what, partial(self._log.read, evaluation_ids, limit=limit), LogUnavailable
        )

    async def closing(self, evaluation_ids: Sequence[str]) -> list[bool]:
        """Return which evaluations are closed."""
        return await self._life.call("closing", partial(self._log.closing, evaluation_ids), LogUnavailable)

    async def settle(self, marks: Sequence[CommitMark]) -> None:
        """Mark how far Postgres is."""
        event = (f"{m.evaluation_id}:{m.attempt}/{m.sequence}{' ended' * m.ended}" for m in marks)
        await self._life.call(f"settle {' '.join(event)}", partial(self._log.settle, marks), LogUnavailable)

    async def now_ms(self) -> int:
        """Return the time."""
        return await self._life.call("now", self._log.now_ms, LogUnavailable)


class DistantTables:
    """`Tables`."""

    def __init__(self, life: Life) -> None:
        self._life = life
        self._tables = life.world.tables

    async def months(self, batch_ids: Sequence[str]) -> Mapping[str, date]:
        """Return the months."""
        return await self._life.call("months", partial(self._tables.months, batch_ids), DatabaseUnavailable)

    async def rows(self, evaluation_ids: Sequence[str]) -> Mapping[str, EvaluationRow]:
        """Return rows."""
        return await self._life.call(
            "rows", partial(self._tables.rows, evaluation_ids), DatabaseUnavailable
        )

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        """Return events."""
        return await self._life.call("stored", partial(self._tables.stored, rows), DatabaseUnavailable)

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        """Commit."""
        what = "commit " + " ".join(map(_changed, changes))
        committed = await self._life.call(what, partial(self._watched, changes), DatabaseUnavailable)
        if committed.lost:
            self._life.world.seen["compare-and-set lost"] += 1
            self._life.world.log_line(self._life.name, f"  lost the race for {sorted(committed.lost)}")
        return committed

    async def _watched(self, changes: Sequence[Change]) -> CommitResult:
        """Commit, and check that no final state changes and no position goes back."""
        held = self._tables.evaluations
        keys = (change.evaluation_id for change in changes)
        before = {key: held[key].row.cursor for key in keys if key in held}
        committed = await self._tables.commit(changes)
        for key, was in before.items():
            now = held[key].row.cursor
            if now != was and (was.phase in FINAL or now[:2] < was[:2]):
                self._life.world.violate(Harm.VIOLATION, f"{key} went from {was} to {now}")
        return committed

    async def quarantine(self, refused: Sequence[QuarantineRow]) -> int:
        """Quarantine."""
        return await self._life.call(
            "quarantine", partial(self._tables.quarantine, refused), DatabaseUnavailable
        )

    async def open_evaluations(self, *, after: str, unchanged_for: float, limit: int) -> Sequence[str]:
        """Return the open evaluations."""
        ask = partial(self._tables.open_evaluations, after=after, unchanged_for=unchanged_for, limit=limit)
        return await self._life.call("open evaluations", ask, DatabaseUnavailable)


def _described(call: Append) -> str:
    events = (f"{r.event.attempt}/{r.event.sequence} {r.event.type}" for r in call.records)
    return f"{call.evaluation_id} ({call.mode}) {', '.join(events)}"


def _changed(change: Change) -> str:
    before = "new" if change.before is None else f"{change.before.attempt}/{change.before.sequence}"
    after = f"{change.after.attempt}/{change.after.sequence} {change.after.phase}"
    aside = "".join(f" +{e.attempt}/{e.sequence} {e.verdict}" for e in change.side_events)
    return f"{change.evaluation_id}: {before} -> {after}{aside};"
