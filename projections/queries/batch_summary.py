"""Aggregates over the log of one batch, for `replay` of a batch."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from projections.database.connection import Connection
from projections.database.errors import UnknownBatch
from projections.folds.progress import Progress
from projections.sql import query

SHOWN_EXECUTORS = 12
SHOWN_SLOWEST = 5


class BatchSpan(NamedTuple):
    """First and last event of a batch, and how many there are."""

    kind: str
    accepted_at: datetime
    events: int
    began_at: datetime | None
    ended_at: datetime | None
    attempts: int
    is_scored: bool = True

    @property
    def length(self) -> timedelta:
        """From its first event to its last."""
        if self.began_at is None or self.ended_at is None:
            return timedelta()
        return self.ended_at - self.began_at


class StepDuration(NamedTuple):
    """Distribution of the seconds that one step took, over a whole batch."""

    step: str
    times: int
    median: float
    p95: float
    longest: float


class SlowEvaluation(NamedTuple):
    """One of the slowest evaluations."""

    evaluation_id: str
    state: str
    attempt: int
    owner: str | None
    seconds: float


class ExecutorShare(NamedTuple):
    """The attempts of one executor in a batch; `unclosed` ones were lost or are running."""

    executor: str
    attempts: int
    completed: int
    retried: int
    failed: int
    unclosed: int
    median: float
    longest: float


class UnfinishedEvaluation(NamedTuple):
    """An open evaluation, and the reasons of its quarantined entries."""

    evaluation_id: str
    attempt: int
    sequence: int
    state: str
    quarantined: str | None


@dataclass(frozen=True, slots=True)
class BatchSummary:
    """The aggregates of one batch."""

    batch_id: str
    span: BatchSpan
    progress: Progress | None
    """None while no event of it is stored."""
    states: dict[str, int]
    waits: list[StepDuration]
    retries: dict[str, int]
    """Attempts after the first, by the reason for which they were opened."""
    verdicts: dict[str, int]
    reordered: tuple[int, int]
    """Events that arrived after a successor, and the evaluations concerned."""
    quarantined: dict[str, int]
    slowest: list[SlowEvaluation]
    executors: list[ExecutorShare]


async def batch_summary(conn: Connection, batch_id: str) -> BatchSummary:
    """Read the aggregates of a batch, or raise `UnknownBatch`."""

    async def rows(name: str, *more: object) -> list[tuple[Any, ...]]:
        return await (await conn.execute(query(name), [batch_id, *more])).fetchall()

    spans = await rows("summary_span")
    if not spans:
        raise UnknownBatch(batch_id)
    return BatchSummary(
        batch_id,
        BatchSpan(*spans[0]),
        await batch_progress(conn, batch_id),
        dict(await rows("summary_states")),
        [StepDuration(*row) for row in [*await rows("summary_waits"), *await rows("summary_storing")]],
        dict(await rows("summary_retries")),
        await batch_verdicts(conn, batch_id),
        await batch_reordered(conn, batch_id),
        dict(await rows("summary_quarantine")),
        [SlowEvaluation(*row) for row in await rows("summary_slowest", SHOWN_SLOWEST)],
        [ExecutorShare(*row) for row in await rows("summary_executors", SHOWN_EXECUTORS)],
    )


async def batch_progress(conn: Connection, batch_id: str) -> Progress | None:
    """Return a batch's counters, or None while no event of it is stored."""
    row = await (await conn.execute(query("batch_counters"), [batch_id])).fetchone()
    return Progress(*row) if row else None


async def batch_verdicts(conn: Connection, batch_id: str) -> dict[str, int]:
    """Count a batch's events by disposition."""
    return dict(await (await conn.execute(query("batch_verdicts"), [batch_id])).fetchall())


async def batch_reordered(conn: Connection, batch_id: str) -> tuple[int, int]:
    """Count events that arrived after a successor, and the evaluations concerned."""
    row = await (await conn.execute(query("batch_reordered"), [batch_id])).fetchone()
    return (row[0], row[1]) if row else (0, 0)


async def batch_unfinished(conn: Connection, batch_id: str, *, limit: int) -> list[UnfinishedEvaluation]:
    """List a batch's evaluations that have not ended."""
    rows = await (await conn.execute(query("batch_unfinished"), [batch_id, limit])).fetchall()
    return [UnfinishedEvaluation(*row) for row in rows]


async def batch_ids(conn: Connection) -> Sequence[str]:
    """List all batches, the oldest first."""
    return [key for (key,) in await (await conn.execute(query("batch_ids"))).fetchall()]


async def nearby_batches(conn: Connection, wanted: str, *, limit: int) -> list[str]:
    """List the batches whose ids are next to an unknown one."""
    rows = await conn.execute(query("nearby_batches"), {"wanted": wanted, "limit": limit})
    return [key for (key,) in await rows.fetchall()]
