"""Read queries on the counters and events of one batch."""

from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from psycopg import AsyncConnection

from projections.sql import query

Connection = AsyncConnection[Any]


@dataclass(frozen=True, slots=True)
class BatchStatus:
    """A batch's counters."""

    total: int
    pending: int
    completed: int
    passed: int
    failed: int
    timed_out: int
    cancelled: int
    retried: int
    bridged: int
    score: float | None
    tokens: int
    cost_usd: Decimal


@dataclass(frozen=True, slots=True)
class UnfinishedEvaluation:
    """An open evaluation, and the reasons of its quarantined entries."""

    evaluation_id: str
    attempt: int
    sequence: int
    state: str
    quarantined: str | None


async def batch_status(conn: Connection, batch_id: str) -> BatchStatus | None:
    """Return a batch's counters, or None while no event of it is stored."""
    row = await (await conn.execute(query("batch_status"), [batch_id])).fetchone()
    return BatchStatus(*row) if row else None


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
