"""Provider batches as people see them."""

from datetime import datetime
from typing import NamedTuple

from projections.database.connection import Connection
from projections.ledger.provider_batches import RequestCounts
from projections.sql import query


class ProviderBatchStatus(NamedTuple):
    """One provider batch of a batch."""

    id: str
    provider_id: str | None
    state: str
    size: int
    counts: RequestCounts
    intended_at: datetime
    submitted_at: datetime | None
    polled_at: datetime | None
    ended_at: datetime | None
    note: str


class ProviderBacklog(NamedTuple):
    """How many evaluations wait for a provider, and how many of them are in no provider batch yet."""

    waiting: int = 0
    unsent: int = 0


async def provider_batches_of(conn: Connection, batch_id: str) -> list[ProviderBatchStatus]:
    """List a batch's provider batches, the oldest first."""
    rows = await (await conn.execute(query("provider_batches_of"), [batch_id])).fetchall()
    return [ProviderBatchStatus._make((*row[:4], RequestCounts(*row[4:9]), *row[9:])) for row in rows]


async def provider_backlog(conn: Connection, batch_id: str) -> ProviderBacklog:
    """Count what waits for a provider; it looks at every open row of the batch."""
    row = await (await conn.execute(query("provider_waiting_counts"), [batch_id])).fetchone()
    return ProviderBacklog(*row) if row else ProviderBacklog()
