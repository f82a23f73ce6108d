"""Read queries on the quarantine."""

from dataclasses import dataclass
from datetime import datetime

from projections.database.connection import Connection
from projections.sql import query


@dataclass(frozen=True, slots=True)
class QuarantinedEntry:
    """A quarantined entry; without its body in lists."""

    id: str
    quarantined_at: datetime
    reason: str
    evaluation_id: str | None
    detail: str
    size: int
    entry_id: str = ""
    body: bytes = b""


async def quarantine_list(
    conn: Connection, *, evaluation: str | None, reason: str | None, limit: int
) -> list[QuarantinedEntry]:
    """List the quarantine, newest first."""
    wanted = {"evaluation": evaluation, "reason": reason, "limit": limit}
    rows = await (await conn.execute(query("quarantine_list"), wanted)).fetchall()
    return [QuarantinedEntry(*row) for row in rows]


async def quarantine_find(conn: Connection, prefix: str, *, max_bytes: int) -> list[QuarantinedEntry]:
    """Return the entries whose id has this prefix: none, one, or two if it is ambiguous."""
    wanted = {"prefix": prefix, "bytes": max_bytes}
    rows = await (await conn.execute(query("quarantine_by_prefix"), wanted)).fetchall()
    return [QuarantinedEntry(*row) for row in rows]
