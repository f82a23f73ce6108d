"""Provider batches in Postgres."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from psycopg import AsyncConnection
from psycopg_pool import AsyncConnectionPool

from eventlog.codec import decode_body
from projections.database.connection import transaction
from projections.ledger.batch import Batch
from projections.ledger.contract import AttemptOpening, EvaluationState, UnpublishedOpening
from projections.ledger.provider_batches import (
    PendingRequest,
    ProviderBatch,
    ProviderBatchState,
    RequestCounts,
)
from projections.sql import query

Connection = AsyncConnection[Any]
COLUMNS = (
    *("id", "batch_id", "target", "members", "attempts", "bytes", "digest", "intended_at", "claimed_at"),
    *("state", "provider_id", "submitted_at", "called_off", "note", "reserved_cost", "reserved_tokens"),
)
"""Of an open provider batch, in the order of the query."""


async def leave_provider_batches(
    conn: Connection, opened: Sequence[tuple[EvaluationState, AttemptOpening]]
) -> None:
    """Remove evaluations whose next attempt opens from their provider batches, or reassign them."""
    concerned = [(one, opening) for one, opening in opened if opening.by_provider or not one.epoch]
    if concerned:
        leaving = {
            "evaluation_ids": [one.row.evaluation_id for one, _ in concerned],
            "by_provider": [opening.by_provider for _, opening in concerned],
        }
        await conn.execute(query("provider_leave"), leaving)


class PostgresProviderBatchRepository:
    """`ProviderBooks` on a PostgreSQL server."""

    def __init__(self, pool: AsyncConnectionPool) -> None:
        self._pool = pool

    async def list_unassigned(
        self, batch: Batch, *, target: int, targets: int, after: str, limit: int
    ) -> list[PendingRequest]:
        wanted = {
            "batch_id": batch.batch_id,
            "month": batch.month,
            "target": target,
            "targets": targets,
            "after": after,
            "limit": limit,
        }
        return await self._asked("provider_waiting", wanted)

    async def record_intent(self, provider_batch: ProviderBatch, evaluation_ids: Sequence[str]) -> bool:
        joining = {
            "id": provider_batch.id,
            "evaluation_ids": list(evaluation_ids),
            "attempts": list(provider_batch.attempts),
        }
        async with transaction(self._pool) as conn:
            running = await conn.execute(query("lock_running_batch"), {"batch_id": provider_batch.batch_id})
            if not running.rowcount:
                return False
            joined = await conn.execute(query("provider_join"), joining)
            if joined.rowcount != provider_batch.size:
                await conn.rollback()
                return False
            await conn.execute(query("insert_provider_batch"), _written(provider_batch))
        return True

    async def list_pending(
        self, provider_batch: ProviderBatch, *, after: str, limit: int
    ) -> list[PendingRequest]:
        wanted = {
            "batch_id": provider_batch.batch_id,
            "id": provider_batch.id,
            "after": after,
            "limit": limit,
        }
        return await self._asked("provider_members", wanted)

    async def filter_pending(
        self, provider_batch: ProviderBatch, evaluation_ids: Sequence[str]
    ) -> set[str]:
        wanted = {"id": provider_batch.id, "evaluation_ids": list(evaluation_ids)}
        return {key for (key,) in await self._rows("provider_still_waiting", wanted)}

    async def list_open(self) -> list[ProviderBatch]:
        return [_read(row) for row in await self._rows("open_provider_batches", [])]

    async def claim(self, provider_batch: ProviderBatch, *, now: datetime) -> ProviderBatch | None:
        wanted = {"id": provider_batch.id, "claimed_at": provider_batch.claimed_at, "now": now}
        return (
            replace(provider_batch, claimed_at=now)
            if await self._execute("claim_provider_batch", wanted)
            else None
        )

    async def record_submission(
        self, provider_batch: ProviderBatch, provider_id: str, *, now: datetime
    ) -> bool:
        known = {"id": provider_batch.id, "provider_id": provider_id, "now": now}
        return await self._execute("provider_batch_submitted", known) > 0

    async def filter_known(self, provider_ids: Sequence[str]) -> set[str]:
        return {key for (key,) in await self._rows("known_provider_ids", [list(provider_ids)])}

    async def record_counts(
        self, provider_batch: ProviderBatch, counts: RequestCounts, *, now: datetime, ended: bool
    ) -> None:
        await self._execute(
            "provider_batch_polled", {"id": provider_batch.id, "now": now, "ended": ended, **asdict(counts)}
        )

    async def record_note(self, provider_batch: ProviderBatch, note: str) -> None:
        await self._execute(
            "set_provider_batch_note", {"id": provider_batch.id, "note": note.replace("\0", "")}
        )

    async def record_cancel_request(self, provider_batch: ProviderBatch) -> None:
        await self._execute("provider_batch_cancel_requested", [provider_batch.id])

    async def close(
        self, provider_batch: ProviderBatch, state: ProviderBatchState, *, now: datetime
    ) -> None:
        await self._execute(
            "close_provider_batch", {"id": provider_batch.id, "state": state.value, "now": now}
        )

    async def has_groups(self, batch_id: str) -> bool:
        [(found,)] = await self._rows("batch_has_serial_groups", [batch_id])
        return bool(found)

    async def update_spec(self, batch_id: str, spec: bytes, *, by: str, reason: str) -> bool:
        wanted = {"batch_id": batch_id, "spec": spec.decode(), "by": by, "reason": reason}
        return await self._execute("change_batch_spec", wanted) > 0

    async def release(self, batch: Batch, *, epochs: Sequence[str], limit: int) -> list[UnpublishedOpening]:
        wanted = {"batch_id": batch.batch_id, "epochs": list(epochs), "limit": limit}
        async with transaction(self._pool) as conn:
            await conn.execute(query("lock_batch"), [batch.batch_id])
            rows = await (await conn.execute(query("provider_release"), wanted)).fetchall()
        found = await self._asked("attempt_openings", [[key for (key,) in rows]])
        return [UnpublishedOpening(one.evaluation_id, ((one.opening, one.body),)) for one in found]

    async def _asked(self, name: str, values: Any) -> list[PendingRequest]:  # noqa: ANN401 - as the query takes them
        async with transaction(self._pool) as conn, conn.cursor(binary=True) as cursor:
            rows = await (await cursor.execute(query(name), values)).fetchall()
        return [PendingRequest(key, decode_body(body), body) for key, body in rows]

    async def _execute(self, name: str, values: Any) -> int:  # noqa: ANN401 - as above
        async with transaction(self._pool) as conn:
            return (await conn.execute(query(name), values)).rowcount

    async def _rows(self, name: str, values: Any) -> list[tuple[Any, ...]]:  # noqa: ANN401 - as above
        async with transaction(self._pool) as conn:
            return await (await conn.execute(query(name), values)).fetchall()


def _written(provider_batch: ProviderBatch) -> dict[str, Any]:
    return {
        "id": provider_batch.id,
        "batch_id": provider_batch.batch_id,
        "target": provider_batch.target,
        "members": list(provider_batch.members),
        "attempts": list(provider_batch.attempts),
        "bytes": provider_batch.bytes,
        "digest": provider_batch.digest,
        "intended_at": provider_batch.intended_at,
        "claimed_at": provider_batch.claimed_at,
        "reserved_cost": provider_batch.reserved_cost,
        "reserved_tokens": provider_batch.reserved_tokens,
    }


def _read(row: Sequence[Any]) -> ProviderBatch:
    named = dict(zip(COLUMNS, row, strict=True))
    lists = {"members": tuple(named["members"]), "attempts": tuple(named["attempts"])}
    return ProviderBatch(**{**named, **lists, "state": ProviderBatchState(named["state"])})
