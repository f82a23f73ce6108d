"""Pausing the batch of a run that must stop, on record, within bounds, whatever the servers do."""

import asyncio
from dataclasses import dataclass

import psycopg

from projections.ledger import Batch
from projections.sql import query
from scoreline.batches.control import operator, whoever
from scoreline.embedded import Servers
from scoreline.problem import Problem
from scoreline.settings import Settings

PATIENCE = 10.0
"""Seconds that the pause may take to be recorded."""
AT_ONCE = 2
"""The same, at the second signal."""


@dataclass(frozen=True, slots=True)
class PauseOutcome:
    """How a batch stands after its run has stopped."""

    status: str
    reason: str = ""
    run_is_replaced: bool = False
    """Whether another run serves it."""


async def pause_on_record(
    servers: Servers, settings: Settings, batch_id: str, run_id: str, *, reason: str
) -> PauseOutcome | None:
    """Pause a batch if this run still serves it; None if the servers do not answer in time."""
    task = asyncio.create_task(_pause(servers, settings, batch_id, run_id, reason))
    await asyncio.wait({task}, timeout=PATIENCE)
    if not task.done():
        task.cancel()
        return None
    return task.result()


async def _pause(
    servers: Servers, settings: Settings, batch_id: str, run_id: str, reason: str
) -> PauseOutcome | None:
    try:
        async with operator(servers, settings) as asking:
            await asking.pause_run(batch_id, run_id, reason=reason)
            return outcome_of(await asking.batch(batch_id), run_id)
    except (Problem, OSError, psycopg.Error):
        return None


def outcome_of(batch: Batch, run_id: str) -> PauseOutcome:
    """Say how a batch stands for a run."""
    status = "running" if batch.state == "completed" and not batch.finished else batch.state
    return PauseOutcome(status, batch.reason, run_is_replaced=batch.run_id != run_id)


def pause_at_once(servers: Servers, batch_id: str, run_id: str, *, reason: str) -> PauseOutcome | None:
    """Do the same without an event loop, in the short time that a second signal leaves."""
    asked = {"batch_id": batch_id, "state": "paused", "by": whoever(), "reason": reason, "run_id": run_id}
    limits = f"-c statement_timeout={AT_ONCE * 1000}"
    try:
        with psycopg.connect(servers.postgres_url, connect_timeout=AT_ONCE, options=limits) as conn:
            conn.execute(query("ledger_ask"), asked)
            row = conn.execute(
                "SELECT state, reason, run_id FROM batches WHERE batch_id = %s", [batch_id]
            ).fetchone()
    except psycopg.Error:
        return None
    return PauseOutcome(row[0], row[1], run_is_replaced=row[2] != run_id) if row else None
