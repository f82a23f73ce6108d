"""Counts for metrics, whose cost does not grow with the number of evaluations."""

from datetime import timedelta
from typing import Any, NamedTuple

from psycopg_pool import AsyncConnectionPool

from domain.batch_spec import unpack
from domain.ids import FLEET
from projections.database.connection import transaction
from projections.folds.progress import Progress, with_progress
from projections.sql import query


class ActiveBatch(NamedTuple):
    """An unfinished batch; without an id: the sum of all batches beyond the limit."""

    batch_id: str | None
    running: int
    """1 or 0 for a single batch, as `paused`."""
    paused: int
    accepted_at: float
    """Seconds since 1970."""
    idle_seconds: float
    budget_spent: float | None
    """The larger spent share of its two limits; None without limits."""
    is_scored: bool
    """Whether it has an evaluator; without one, none of its evaluations count as passed."""
    progress: Progress


class FinishedBatch(NamedTuple):
    """A recently finished batch."""

    batch_id: str
    state: str
    total: int
    completed: int
    finished_at: float
    """Seconds since 1970."""


class BatchMonitor:
    """Reads the counts of the batches that one run serves, or the fleet."""

    def __init__(self, pool: AsyncConnectionPool, *, run_id: str = FLEET) -> None:
        self._pool = pool
        self._run_id = run_id

    async def batches(self, *, limit: int) -> list[ActiveBatch]:
        """List unfinished batches, the oldest first; those beyond the limit as one sum."""
        rows = await self._rows("active_batches", {"limit": limit})
        return [ActiveBatch._make(with_progress(row)) for row in rows]

    async def finished(self, *, within: timedelta, limit: int) -> list[FinishedBatch]:
        """List batches that finished within a span of time, newest first."""
        wanted = {"within": within, "limit": limit}
        return [FinishedBatch(*row) for row in await self._rows("recently_finished_batches", wanted)]

    async def stuck(self, *, beyond: timedelta, limit: int) -> int:
        """Count evaluations unchanged for `beyond` past the deadline of an attempt, up to a limit."""
        specs = await self._rows("running_batch_specs", {})
        deadlines = {batch_id: unpack(spec).attempt_deadline for batch_id, spec in specs}
        batches = {"batch_ids": list(deadlines), "deadlines": list(deadlines.values())}
        [(count,)] = await self._rows("stuck_evaluations", {**batches, "beyond": beyond, "limit": limit})
        return int(count)

    async def provider_batches(self) -> int:
        """Count the provider batches that are submitted."""
        [(count,)] = await self._rows("submitted_provider_batches", {})
        return int(count)

    async def _rows(self, name: str, wanted: dict[str, Any]) -> list[tuple[Any, ...]]:
        async with transaction(self._pool) as conn:
            return await (await conn.execute(query(name), {**wanted, "run_id": self._run_id})).fetchall()
