"""The projection store in memory, for unit tests and simulation."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime

from eventlog.events import EventKey
from projections.database.errors import UnstorableData
from projections.folds.change import Change, EvaluationRow, EventRow, QuarantineRow, StoredEvent
from projections.folds.progress import Progress
from projections.folds.scorecard import Scorecard
from projections.store.contract import CommitResult


@dataclass(slots=True)
class _Held:
    row: EvaluationRow
    ended_at: datetime | None
    updated_at: float


class MemoryStore:
    """`Tables` without a server."""

    def __init__(self, clock: Callable[[], float], *, month: date = date(2026, 1, 1)) -> None:
        self.batches: dict[str, date] = {}
        self.evaluations: dict[str, _Held] = {}
        self.events: dict[tuple[str, int, int], EventRow] = {}
        self.scorecards: dict[str, Scorecard] = {}
        self.progress: dict[tuple[str, int], Progress] = {}
        self.bridges: dict[tuple[str, int, int], tuple[range, ...]] = {}
        self.quarantined: dict[str, QuarantineRow] = {}
        self.horizons: dict[str, str] = {}
        """Last published evaluation of each submitted batch, set by the ledger: sweeps stop there."""
        self.clock = clock
        self._month = month

    async def months(self, batch_ids: Sequence[str]) -> Mapping[str, date]:
        return {batch_id: self.batches.setdefault(batch_id, self._month) for batch_id in batch_ids}

    async def rows(self, evaluation_ids: Sequence[str]) -> Mapping[str, EvaluationRow]:
        return {key: self.evaluations[key].row for key in evaluation_ids if key in self.evaluations}

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        return {
            row.evaluation_id: {
                place: StoredEvent(event.event, event.verdict)
                for place, event in self.stored_of(row.evaluation_id).items()
            }
            for row in rows
        }

    def stored_of(self, evaluation_id: str) -> dict[EventKey, EventRow]:
        """Return all events of one evaluation."""
        return {
            (attempt, sequence): event
            for (key, attempt, sequence), event in self.events.items()
            if key == evaluation_id
        }

    def insert(self, row: EvaluationRow, opening: EventRow) -> None:
        """Insert an accepted evaluation."""
        self.evaluations[row.evaluation_id] = _Held(row, None, self.clock())
        self.events[row.evaluation_id, opening.attempt, opening.sequence] = opening

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        committed = CommitResult({c.evaluation_id for c in changes if c.moves and not self._is_as_read(c)})
        won = [c for c in changes if c.evaluation_id not in committed.lost]
        self._refuse_stored_keys(won)
        for change in won:
            if change.moves:
                self._move(change)
                committed.progress += change.progress
            committed.progress += self._write_aside(change)
            committed.newly_quarantined += await self.quarantine(change.quarantined)
        return committed

    def _is_as_read(self, change: Change) -> bool:
        held = self.evaluations.get(change.evaluation_id)
        return (held.row.cursor if held else None) == change.before

    def _refuse_stored_keys(self, changes: Sequence[Change]) -> None:
        """Enforce the unique key of `events` before anything is written."""
        for event in (event for change in changes for event in change.events):
            if (event.evaluation_id, event.attempt, event.sequence) in self.events:
                raise UnstorableData(f"{event[1:4]} is stored already")

    def _move(self, change: Change) -> None:
        place = (change.evaluation_id, change.batch_id, change.month, change.after)
        row = EvaluationRow(*place, change.owner, change.bridged, change.head)
        self.evaluations[change.evaluation_id] = _Held(row, change.ended_at, self.clock())
        for event in change.events:
            self.events[event.evaluation_id, event.attempt, event.sequence] = event
        if change.reopened:
            self.scorecards.pop(row.evaluation_id, None)
        if change.scorecard:
            self.scorecards[row.evaluation_id] = change.scorecard
        for bridge in change.bridges:
            key = (row.evaluation_id, bridge.attempt, bridge.closing.event.sequence)
            self.bridges[key] = bridge.missing
        self._count(change, change.progress)

    def _write_aside(self, change: Change) -> Progress:
        added = Progress()
        for event in change.side_events:
            key = (event.evaluation_id, event.attempt, event.sequence)
            if key not in self.events:
                self.events[key] = event
                added += change.side_progress.get(key[1:], Progress())
        if added:
            self._count(change, added)
        return added

    def _count(self, change: Change, progress: Progress) -> None:
        counted = self.progress.setdefault((change.batch_id, change.shard), Progress())
        counted += progress

    async def quarantine(self, refused: Sequence[QuarantineRow]) -> int:
        new = {bad.id: bad for bad in refused if bad.id not in self.quarantined}
        self.quarantined |= new
        return len(new)

    async def open_evaluations(self, *, after: str, unchanged_for: float, limit: int) -> Sequence[str]:
        until = self.clock() - unchanged_for
        found = (
            key
            for key, held in sorted(self.evaluations.items())
            if held.ended_at is None
            and key > after
            and held.updated_at < until
            and self._is_published(held)
        )
        return list(found)[:limit]

    def _is_published(self, held: _Held) -> bool:
        """Whether an evaluation is published."""
        horizon = self.horizons.get(held.row.batch_id)
        return horizon is None or held.row.evaluation_id <= horizon
