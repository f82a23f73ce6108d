"""Watching a batch until it is over or abandoned, through any outage of Postgres or Redis."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from psycopg import AsyncConnection, InterfaceError, OperationalError

from eventlog.backoff import Backoff
from projections.database.connection import Connection
from scoreline.reports.crew import CrewReader
from scoreline.reports.look import STARTING, Look, take_look
from scoreline.reports.standing import is_over

LOOK_EVERY = 1.0
"""Seconds; a look costs a few counters and a window of open evaluations."""


class Connectivity(StrEnum):
    """A change of the connection to PostgreSQL, with the text that reports it."""

    LOST = "PostgreSQL does not answer; waiting for it."
    RESTORED = "PostgreSQL answers again."


@dataclass(slots=True)
class Watcher:
    """Looks at one batch again and again."""

    postgres_url: str
    batch_id: str
    crew: CrewReader
    on_connectivity: Callable[[Connectivity], None]
    """Called when the connection is lost and when it is restored."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    _conn: Connection | None = None
    _abandoned: tuple[str, datetime] | None = None
    """The run that was first seen to serve the batch no more, and when."""

    async def until_over(self, on_look: Callable[[Look], None]) -> Look:
        """Look until the batch is over, or its local run gone for good; raises `UnknownBatch`."""
        try:
            while True:
                look = await self.look()
                on_look(look)
                if is_over(look.snapshot) or self._is_abandoned(look):
                    return look
                await self.pause(LOOK_EVERY)
        finally:
            await self.aclose()

    def _is_abandoned(self, look: Look) -> bool:
        """Whether nothing has served a local run's batch for so long that no process of it is starting."""
        run_id, now = look.snapshot.run_id, look.snapshot.now
        if not look.is_abandoned:
            self._abandoned = None
        elif self._abandoned is None or self._abandoned[0] != run_id:
            self._abandoned = run_id, now
        return self._abandoned is not None and now - self._abandoned[1] >= STARTING

    async def aclose(self) -> None:
        """Close the connection."""
        if self._conn:
            await self._conn.close()

    async def look(self) -> Look:
        """Look at the batch once, as soon as the servers answer; raises `UnknownBatch`."""
        backoff, away = Backoff(longest=2.0, first=0.1), False
        while True:
            try:
                conn = await self._connection()
                look = await take_look(conn, self.batch_id, self.crew, closely=False)
            except (OperationalError, InterfaceError) as error:
                _raise_if_cancelled(error)
                if not away:
                    self.on_connectivity(Connectivity.LOST)
                away = True
                await self.pause(backoff.next())
                continue
            if away:
                self.on_connectivity(Connectivity.RESTORED)
            return look

    async def _connection(self) -> Connection:
        if self._conn is None or self._conn.closed:
            self._conn = await AsyncConnection.connect(
                self.postgres_url, connect_timeout=3, application_name="scoreline batch"
            )
        return self._conn


def _raise_if_cancelled(error: Exception) -> None:
    """Raise the cancellation that this error stands for: a query that is cancelled fails with its own."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError from error
