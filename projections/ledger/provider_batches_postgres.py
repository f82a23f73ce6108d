"""Provider batches in Postgres."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from eventlog.codec import decode_body
from projections.database.connection import transaction
from projections.ledger.contract import AttemptOpening, Batch, EvaluationState, UnpublishedOpening
from projections.ledger.provider_batches import (
    ProviderBatch,
    ProviderBatchMember,
    ProviderBatchState,
    RequestCounts,
)
from projections.sql import query

Connection = AsyncConnection[Any]
COLUMNS = (
    *("id", "batch_id", "target", "members", "attempts", "bytes", "digest", "intended_at", "claimed_at"),
    *("state", "provider_id", "submitted_at", "called_off", "note", "reserved_cost", "reserved_tokens"),
)
"""Of an open chunk, in the order of the query."""


async def leave_chunks(conn: Connection, opened: Sequence[tuple[EvaluationState, AttemptOpening]]) -> None:
    """Take those whose next attempt opens out of their chunks, and put those that ask again in line."""
    concerned = [(one, opening) for one, opening in opened if opening.asks or not one.epoch]
    if concerned:
        leaving = {
            "evaluation_ids": [one.row.evaluation_id for one, _ in concerned],
            "asks": [opening.asks for _, opening in concerned],
        }
        await conn.execute(query("provider_leave"), leaving)


class PostgresProviderBatchRepository:
    """`ProviderBooks` on a PostgreSQL server."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool

    async def waiting(
        self, batch: Batch, *, target: int, targets: int, after: str, limit: int
    ) -> list[ProviderBatchMember]:
        """Return a page of those that wait to be asked of one of `targets`, and are in no chunk yet."""
        wanted = {
            "batch_id": batch.batch_id,
            "month": batch.month,
            "target": target,
            "targets": targets,
            "after": after,
            "limit": limit,
        }
        return await self._asked("provider_waiting", wanted)

    async def intend(self, chunk: ProviderBatch, evaluation_ids: Sequence[str]) -> bool:
        """Write a chunk down, and that these are in it; False if the batch was stopped or paused since."""
        joining = {"id": chunk.id, "evaluation_ids": list(evaluation_ids), "attempts": list(chunk.attempts)}
        async with transaction(self._pool) as conn:
            running = await conn.execute(query("lock_running_batch"), {"batch_id": chunk.batch_id})
            if not running.rowcount:
                return False
            joined = await conn.execute(query("provider_join"), joining)
            if joined.rowcount != chunk.size:
                await conn.rollback()
                return False
            await conn.execute(query("insert_provider_batch"), _written(chunk))
        return True

    async def members(self, chunk: ProviderBatch, *, after: str, limit: int) -> list[ProviderBatchMember]:
        """Return a page of those evaluations of a chunk that still wait for its answers."""
        wanted = {"batch_id": chunk.batch_id, "id": chunk.id, "after": after, "limit": limit}
        return await self._asked("provider_members", wanted)

    async def still_waiting(self, chunk: ProviderBatch, evaluation_ids: Sequence[str]) -> set[str]:
        """Name those of these evaluations that still wait for a chunk's answers."""
        wanted = {"id": chunk.id, "evaluation_ids": list(evaluation_ids)}
        return {key for (key,) in await self._rows("provider_still_waiting", wanted)}

    async def open_chunks(self) -> list[ProviderBatch]:
        """List the chunks that are not done with, of all batches, the oldest first."""
        return [_read(row) for row in await self._rows("open_provider_batches", [])]

    async def claim(self, chunk: ProviderBatch, *, now: datetime) -> ProviderBatch | None:
        """Take the right to submit a chunk once more; None if somebody else was first."""
        wanted = {"id": chunk.id, "claimed_at": chunk.claimed_at, "now": now}
        return (
            replace(chunk, claimed_at=now) if await self._execute("claim_provider_batch", wanted) else None
        )

    async def submitted(self, chunk: ProviderBatch, provider_id: str, *, now: datetime) -> bool:
        """Write down what the provider calls a chunk; False if that was known, or it is done with."""
        known = {"id": chunk.id, "provider_id": provider_id, "now": now}
        return await self._execute("provider_batch_submitted", known) > 0

    async def known(self, provider_ids: Sequence[str]) -> set[str]:
        """Name those of a provider's batches that belong to some chunk."""
        return {key for (key,) in await self._rows("known_provider_ids", [list(provider_ids)])}

    async def seen(
        self, chunk: ProviderBatch, counts: RequestCounts, *, now: datetime, ended: bool
    ) -> None:
        """Write down how a chunk stands at the provider."""
        await self._execute(
            "provider_batch_polled", {"id": chunk.id, "now": now, "ended": ended, **asdict(counts)}
        )

    async def noted(self, chunk: ProviderBatch, note: str) -> None:
        """Write down what keeps a chunk; empty: nothing any more."""
        await self._execute("set_provider_batch_note", {"id": chunk.id, "note": note.replace("\0", "")})

    async def called_off(self, chunk: ProviderBatch) -> None:
        """Write down that the provider was asked to cancel a chunk."""
        await self._execute("provider_batch_cancel_requested", [chunk.id])

    async def close(self, chunk: ProviderBatch, state: ProviderBatchState, *, now: datetime) -> None:
        """Write down that a chunk is done with; those of an abandoned one wait for another."""
        await self._execute("close_provider_batch", {"id": chunk.id, "state": state.value, "now": now})

    async def has_groups(self, batch_id: str) -> bool:
        """Say whether evaluations of a batch wait for each other."""
        [(found,)] = await self._rows("batch_has_serial_groups", [batch_id])
        return bool(found)

    async def change_spec(self, batch_id: str, spec: bytes, *, by: str, reason: str) -> bool:
        """Change what a batch is about, as far as that is possible; False if it is over."""
        wanted = {"batch_id": batch_id, "spec": spec.decode(), "by": by, "reason": reason}
        return await self._execute("change_batch_spec", wanted) > 0

    async def release(self, batch: Batch, *, epochs: Sequence[str], limit: int) -> list[UnpublishedOpening]:
        """Take some that are in no chunk yet out of the line, as published in these epochs."""
        wanted = {"batch_id": batch.batch_id, "epochs": list(epochs), "limit": limit}
        async with transaction(self._pool) as conn:
            await conn.execute(query("lock_batch"), [batch.batch_id])
            rows = await (await conn.execute(query("provider_release"), wanted)).fetchall()
        found = await self._asked("attempt_openings", [[key for (key,) in rows]])
        return [UnpublishedOpening(one.evaluation_id, ((one.opening, one.body),)) for one in found]

    async def _asked(self, name: str, values: Any) -> list[ProviderBatchMember]:  # noqa: ANN401 - as the query takes them
        async with transaction(self._pool) as conn, conn.cursor(binary=True) as cursor:
            rows = await (await cursor.execute(query(name), values)).fetchall()
        return [ProviderBatchMember(key, decode_body(body), body) for key, body in rows]

    async def _execute(self, name: str, values: Any) -> int:  # noqa: ANN401 - as above
        async with transaction(self._pool) as conn:
            return (await conn.execute(query(name), values)).rowcount

    async def _rows(self, name: str, values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - as above
        async with transaction(self._pool) as conn:
            return await (await conn.execute(query(name), values)).fetchall()


def _written(chunk: ProviderBatch) -> dict[str, Any]:
    return {
        "id": chunk.id,
        "batch_id": chunk.batch_id,
        "target": chunk.target,
        "members": list(chunk.members),
        "attempts": list(chunk.attempts),
        "bytes": chunk.bytes,
        "digest": chunk.digest,
        "intended_at": chunk.intended_at,
        "claimed_at": chunk.claimed_at,
        "reserved_cost": chunk.reserved_cost,
        "reserved_tokens": chunk.reserved_tokens,
    }


def _read(row: Sequence[Any]) -> ProviderBatch:
    named = dict(zip(COLUMNS, row, strict=True))
    lists = {"members": tuple(named["members"]), "attempts": tuple(named["attempts"])}
    return ProviderBatch(**{**named, **lists, "state": ProviderBatchState(named["state"])})
