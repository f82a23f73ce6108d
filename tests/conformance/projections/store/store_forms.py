"""The implementations of the projection store, with what a test can see beyond the contract."""

from dataclasses import dataclass, fields
from datetime import date, datetime
from typing import Any, Protocol

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from eventlog.events import Event
from eventlog.timeline import Cursor, replay
from projections.folds.change import Change, EvaluationRow, QuarantineRow, fold
from projections.folds.progress import Progress
from projections.folds.scorecard import Scorecard
from projections.store.contract import ProjectionStore
from projections.store.memory import MemoryStore
from projections.store.postgres import FEW, PostgresStore
from tests.builders import BATCH, EVALUATION, arrive

Key = tuple[str, int, int]
SHARD = 3


@dataclass(frozen=True)
class Contents:
    """All rows of the tables, by key."""

    batches: dict[str, date]
    ended_at: dict[str, datetime | None]
    events: dict[Key, tuple[str, bytes]]
    """Disposition and body."""
    scorecards: dict[str, Scorecard]
    progress: dict[tuple[str, int], Progress]
    bridges: dict[Key, tuple[range, ...]]
    quarantine: dict[str, QuarantineRow]


class TablesForm(Protocol):
    """One implementation under test."""

    @property
    def tables(self) -> ProjectionStore:
        """The store itself."""
        ...

    async def contents(self) -> Contents:
        """Return all rows."""
        ...

    async def wait(self, seconds: float) -> None:
        """Make every row older by this time."""
        ...


class MemoryForm:
    def __init__(self) -> None:
        self.now = 1_000.0
        self.tables = MemoryStore(lambda: self.now)

    async def contents(self) -> Contents:
        held = self.tables
        return Contents(
            dict(held.batches),
            {key: row.ended_at for key, row in held.evaluations.items()},
            {key: (event.verdict, event.event) for key, event in held.events.items()},
            dict(held.scorecards),
            {key: Progress(*_values(counted)) for key, counted in held.progress.items()},
            dict(held.bridges),
            dict(held.quarantined),
        )

    async def wait(self, seconds: float) -> None:
        self.now += seconds


class PostgresForm:
    def __init__(self, pool: AsyncConnectionPool, conn: AsyncConnection[Any], *, few: int = FEW) -> None:
        self.tables = PostgresStore(pool, few=few)
        self.conn = conn

    async def contents(self) -> Contents:
        return Contents(
            dict(await self.fetch("SELECT batch_id, month FROM batches")),
            dict(await self.fetch("SELECT evaluation_id, ended_at FROM evaluations")),
            {
                (key, attempt, sequence): (verdict, body.encode())
                for key, attempt, sequence, verdict, body in await self.fetch(
                    "SELECT evaluation_id, attempt, sequence, verdict, event::text FROM events"
                )
            },
            {row[0]: _scorecard(row) for row in await self.fetch(_SCORECARDS)},
            {(batch, shard): Progress(*sums) for batch, shard, *sums in await self.fetch(_PROGRESS)},
            {
                (key, attempt, sequence): tuple(range(gap.lower, gap.upper) for gap in missing)
                for key, attempt, sequence, missing in await self.fetch(
                    "SELECT evaluation_id, attempt, closing_sequence, missing FROM gap_bridges"
                )
            },
            {row[0]: QuarantineRow(*row) for row in await self.fetch(_QUARANTINE)},
        )

    async def fetch(self, statement: Any) -> list[Any]:
        return await (await self.conn.execute(statement)).fetchall()

    async def wait(self, seconds: float) -> None:
        await self.conn.execute(
            "UPDATE evaluations SET updated_at = updated_at - make_interval(secs => %s)", [seconds]
        )


def _values(counted: Progress) -> list[Any]:
    return [getattr(counted, each.name) for each in fields(counted)]


_SCORECARDS = f"SELECT {', '.join(Scorecard._fields)} FROM scorecards"
_SCORECARDS = _SCORECARDS.replace("scores,", "scores::text,").replace("error,", "error::text,")
_PROGRESS = (
    f"SELECT batch_id, shard, {', '.join(each.name for each in fields(Progress))} FROM batch_progress"
)
_QUARANTINE = f"SELECT {', '.join(QuarantineRow._fields)} FROM quarantine"


def _scorecard(row: Any) -> Scorecard:
    card = Scorecard(*row)
    error: Any = card.error
    scores: Any = card.scores
    return card._replace(scores=scores.encode(), error=error.encode() if error else None)


async def change_of(
    form: TablesForm, *events: Event, evaluation_id: str = EVALUATION, bridge: bool = False
) -> Change:
    """Fold events onto the stored rows."""
    rows = await form.tables.rows([evaluation_id])
    months = await form.tables.months([BATCH])
    row = rows.get(evaluation_id) or EvaluationRow(evaluation_id, BATCH, months[BATCH], Cursor())
    walked = replay(row.cursor, arrive(events), bridge_until_ms=2**62 if bridge else None)
    return fold(row, SHARD, walked, exists=evaluation_id in rows)


async def store(form: TablesForm, *events: Event, bridge: bool = False) -> Change:
    """Commit events without a concurrent writer."""
    change = await change_of(form, *events, evaluation_id=events[0].evaluation_id, bridge=bridge)
    assert (await form.tables.commit([change])).lost == set()
    return change
