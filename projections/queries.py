"""Read queries: what people ask of the tables."""

from dataclasses import dataclass
from datetime import datetime
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
class Unfinished:
    """An evaluation that has not ended, and why that may be."""

    evaluation_id: str
    attempt: int
    sequence: int
    state: str
    quarantined: str | None


@dataclass(frozen=True, slots=True)
class QuarantinedEntry:
    """One entry of the quarantine; the body only where it was asked for."""

    id: str
    quarantined_at: datetime
    reason: str
    evaluation_id: str | None
    detail: str
    size: int
    entry_id: str = ""
    body: bytes = b""


async def batch_status(conn: Connection, batch_id: str) -> BatchStatus | None:
    """Return a batch's counters, or None while nothing of it has been stored."""
    row = await (await conn.execute(query("batch_status"), [batch_id])).fetchone()
    return BatchStatus(*row) if row else None


async def batch_verdicts(conn: Connection, batch_id: str) -> dict[str, int]:
    """Count a batch's events by what became of them."""
    return dict(await (await conn.execute(query("batch_verdicts"), [batch_id])).fetchall())


async def batch_reordered(conn: Connection, batch_id: str) -> tuple[int, int]:
    """Count events that arrived after a successor, and the evaluations concerned."""
    row = await (await conn.execute(query("batch_reordered"), [batch_id])).fetchone()
    return (row[0], row[1]) if row else (0, 0)


async def batch_unfinished(conn: Connection, batch_id: str, *, limit: int) -> list[Unfinished]:
    """List a batch's evaluations that have not ended."""
    rows = await (await conn.execute(query("batch_unfinished"), [batch_id, limit])).fetchall()
    return [Unfinished(*row) for row in rows]


async def quarantine_list(
    conn: Connection, *, evaluation: str | None, reason: str | None, limit: int
) -> list[QuarantinedEntry]:
    """List the quarantine, newest first."""
    wanted = {"evaluation": evaluation, "reason": reason, "limit": limit}
    rows = await (await conn.execute(query("quarantine_list"), wanted)).fetchall()
    return [QuarantinedEntry(*row) for row in rows]


async def quarantine_find(conn: Connection, prefix: str, *, max_bytes: int) -> list[QuarantinedEntry]:
    """Return the entries whose id begins so: none, the one, or two where that is not enough to tell."""
    wanted = {"prefix": prefix, "bytes": max_bytes}
    rows = await (await conn.execute(query("quarantine_by_prefix"), wanted)).fetchall()
    return [QuarantinedEntry(*row) for row in rows]
