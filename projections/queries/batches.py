"""Read queries on batches: snapshots, lists, waiting evaluations and dead letters.

They read only the counters of a batch and one window of open evaluations, except `variant_results` and
`serial_waiting`, which read every row.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import NamedTuple

from pydantic import AwareDatetime, ConfigDict, TypeAdapter

from domain.ids import FLEET
from projections.database.connection import Connection
from projections.database.errors import UnknownBatch
from projections.folds.progress import Progress, with_progress
from projections.ledger.batch import Budget, with_totals
from projections.sql import query

_TIME: TypeAdapter[datetime] = TypeAdapter(AwareDatetime, config=ConfigDict(defer_build=True))


class ListedBatch(NamedTuple):
    """A batch in a list."""

    batch_id: str
    name: str
    project: str
    status: str
    accepted_at: datetime
    finished_at: datetime | None
    now: datetime
    is_scored: bool
    """Whether it has an evaluator."""
    run_id: str
    unrecorded_usd: Decimal
    """Estimated cost of calls that no event records."""
    progress: Progress

    @property
    def spent_usd(self) -> Decimal:
        """The spend that a budget counts."""
        return self.progress.cost_usd + self.unrecorded_usd


@dataclass(frozen=True, slots=True)
class BatchSnapshot:
    """A batch and its counters at one moment, on the database's clock."""

    batch_id: str
    kind: str
    name: str
    project: str
    dataset: str
    state: str
    reason: str
    spec: str | None
    accepted_at: datetime
    deadline: datetime | None
    finished_at: datetime | None
    now: datetime
    run_id: str = FLEET
    """The local run that serves it."""
    requires: Sequence[str] = ()
    """Labels that an executor must declare to serve it."""
    budget: Budget = field(default_factory=Budget)
    progress: Progress = field(default_factory=Progress)

    @property
    def duration(self) -> timedelta:
        """From its acceptance to its end, or until now."""
        return max(timedelta(), (self.finished_at or self.now) - self.accepted_at)


@dataclass(frozen=True, slots=True)
class WaitingCount:
    """Count of published evaluations of one state that have not ended."""

    state: str
    count: int
    unmoved_since: datetime
    oldest: str
    """The evaluation that has been unchanged for longest."""
    next_retry: datetime | None = None


class VariantResult(NamedTuple):
    """Counters of one variant."""

    variant: int
    total: int
    ended: int
    completed: int
    passed: int
    dead_letters: int
    score: float | None


class DeadLetterRow(NamedTuple):
    """A dead letter; `error` and `closing` are JSON."""

    evaluation_id: str
    case_id: str
    variant: int
    repetition: int
    attempt: int
    status: str
    error: str | None
    closing: str | None
    ended_at: datetime


async def list_batches(
    conn: Connection, *, status: str | None, project: str | None, limit: int
) -> list[ListedBatch]:
    """List batches, newest first."""
    wanted = {"status": status, "project": project, "limit": limit}
    rows = await (await conn.execute(query("batches_list"), wanted)).fetchall()
    return [ListedBatch._make(with_progress(row)) for row in rows]


async def read_snapshot(conn: Connection, batch_id: str) -> BatchSnapshot:
    """Read a batch and its counters, or raise `UnknownBatch`."""
    row = await (await conn.execute(query("batches_snapshot"), [batch_id])).fetchone()
    if row is None:
        raise UnknownBatch(batch_id)
    return BatchSnapshot(*with_totals(row))


async def waiting(conn: Connection, batch_id: str) -> list[WaitingCount]:
    """Count published evaluations that have not ended, by state, the most frequent first."""
    rows = await (await conn.execute(query("batches_waiting"), [batch_id])).fetchall()
    return [
        WaitingCount(
            state, count, since, oldest, None if retry_at is None else _TIME.validate_python(retry_at)
        )
        for state, count, since, oldest, retry_at in rows
    ]


async def serial_waiting(conn: Connection, batch_id: str) -> int:
    """Count evaluations that wait for an earlier one of their serial group."""
    row = await (await conn.execute(query("batches_serial"), [batch_id])).fetchone()
    return row[0] if row else 0


async def variant_results(conn: Connection, batch_id: str) -> list[VariantResult]:
    """Return the counters of each variant."""
    rows = await (await conn.execute(query("batches_variants"), [batch_id])).fetchall()
    return [VariantResult(*row) for row in rows]


async def read_dead_letters(conn: Connection, batch_id: str, *, limit: int) -> list[DeadLetterRow]:
    """List a batch's dead letters, newest first."""
    wanted = {"batch": batch_id, "limit": limit}
    rows = await (await conn.execute(query("dead_letters"), wanted)).fetchall()
    return [DeadLetterRow(*row) for row in rows]


async def dead_letter_kinds(conn: Connection, batch_id: str) -> dict[str, int]:
    """Count a batch's dead letters by the kind of their error."""
    return dict(await (await conn.execute(query("dead_letter_kinds"), [batch_id])).fetchall())
