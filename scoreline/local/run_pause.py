"""Pausing the batch of a run that must stop, on record, within bounds, whatever the servers do."""

import asyncio
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import psycopg

from projections.sql import query
from scoreline.command_error import CommandError
from scoreline.servers.addresses import Servers
from scoreline.settings import Settings
from scoreline.submit.current_user import current_user
from taskqueue.tasks import QueueUnavailable

TIMEOUT = 10.0
"""Seconds that the pause may take to be recorded."""
AT_ONCE = 2
"""The same, at the second signal."""
OVER = frozenset({"completed", "cancelled", "expired"})
"""States of a batch that no run can pause any more."""
STATE = """
SELECT b.state, b.reason, b.run_id, b.finished_at IS NOT NULL, coalesce(b.total, 0),
       (SELECT coalesce(sum(p.completed + p.failed + p.timed_out + p.cancelled), 0)::bigint
        FROM batch_progress p WHERE p.batch_id = b.batch_id)
FROM batches b
WHERE b.batch_id = %s
"""


@dataclass(frozen=True, slots=True)
class PauseOutcome:
    """How a batch stands after its run has stopped."""

    status: str
    reason: str = ""
    run_is_replaced: bool = False
    """Whether another run serves it."""
    ended: int = 0
    total: int = 0

    @property
    def is_over(self) -> bool:
        """Whether the batch had ended before it could be paused."""
        return self.status in OVER and not self.run_is_replaced


async def pause_on_record(
    servers: Servers, settings: Settings, batch_id: str, run_id: str, *, reason: str
) -> PauseOutcome | None:
    """Pause a batch if this run still serves it; None if the servers do not answer in time."""
    return await _in_time(_pause(servers, settings, batch_id, run_id, reason))


async def read_outcome(servers: Servers, batch_id: str, run_id: str) -> PauseOutcome | None:
    """Read how a batch stands once its processes have stopped; None if PostgreSQL does not answer."""
    return await _in_time(_read(servers, batch_id, run_id))


async def _in_time(reading: Coroutine[Any, Any, PauseOutcome | None]) -> PauseOutcome | None:
    task = asyncio.create_task(reading)
    await asyncio.wait({task}, timeout=TIMEOUT)
    if not task.done():
        task.cancel()
        return None
    return task.result()


async def record_unrecorded(servers: Servers, settings: Settings, batch_id: str) -> None:
    """Write down the spend of calls that were broken off; what fails here is written at the resume."""
    from scoreline.submit.operator import operator  # noqa: PLC0415 - only a run that stops needs it

    with suppress(TimeoutError, CommandError, OSError, psycopg.Error, QueueUnavailable):
        async with asyncio.timeout(TIMEOUT), operator(servers, settings) as asking:
            await asking.record_unrecorded(batch_id)


async def _pause(
    servers: Servers, settings: Settings, batch_id: str, run_id: str, reason: str
) -> PauseOutcome | None:
    from scoreline.submit.operator import operator  # noqa: PLC0415 - only a run that stops needs it

    try:
        async with operator(servers, settings) as asking:
            await asking.pause_run(batch_id, run_id, reason=reason)
            return await _read(servers, batch_id, run_id)
    except (CommandError, OSError, psycopg.Error):
        return None


async def _read(servers: Servers, batch_id: str, run_id: str) -> PauseOutcome | None:
    try:
        async with await psycopg.AsyncConnection.connect(servers.postgres_url) as conn:
            return _outcome(await (await conn.execute(STATE, [batch_id])).fetchone(), run_id)
    except (OSError, psycopg.Error):
        return None


def _outcome(row: tuple[Any, ...] | None, run_id: str) -> PauseOutcome | None:
    if row is None:
        return None
    state, reason, serving, is_finished, total, ended = row
    status = "running" if state == "completed" and not is_finished else state
    return PauseOutcome(status, reason, run_is_replaced=serving != run_id, ended=ended, total=total)


def pause_at_once(servers: Servers, batch_id: str, run_id: str, *, reason: str) -> PauseOutcome | None:
    """Do the same without an event loop, in the short time that a second signal leaves."""
    asked = {
        "batch_id": batch_id,
        "state": "paused",
        "by": current_user(),
        "reason": reason,
        "run_id": run_id,
    }
    limits = f"-c statement_timeout={AT_ONCE * 1000}"
    try:
        with psycopg.connect(servers.postgres_url, connect_timeout=AT_ONCE, options=limits) as conn:
            conn.execute(query("request_batch_state"), asked)
            return _outcome(conn.execute(STATE, [batch_id]).fetchone(), run_id)
    except psycopg.Error:
        return None
