"""Provider batches as people see them."""

from datetime import datetime
from typing import NamedTuple

from projections.database.connection import Connection
from projections.ledger.provider_batches import Counts
from projections.sql import query


class ShownChunk(NamedTuple):
    """One provider batch of a batch."""

    id: str
    provider_id: str | None
    state: str
    size: int
    counts: Counts
    intended_at: datetime
    submitted_at: datetime | None
    polled_at: datetime | None
    ended_at: datetime | None
    note: str


class Unanswered(NamedTuple):
    """How many evaluations wait for a provider, and how many of them are in no provider batch yet."""

    waiting: int = 0
    unsent: int = 0


async def shown_chunks(conn: Connection, batch_id: str) -> list[ShownChunk]:
    """List a batch's provider batches, the oldest first."""
    rows = await (await conn.execute(query("provider_batches_of"), [batch_id])).fetchall()
    return [ShownChunk._make((*row[:4], Counts(*row[4:9]), *row[9:])) for row in rows]


async def unanswered(conn: Connection, batch_id: str) -> Unanswered:
    """Count what waits for a provider; it looks at every open row of the batch."""
    row = await (await conn.execute(query("provider_waiting_counts"), [batch_id])).fetchone()
    return Unanswered(*row) if row else Unanswered()
