"""Polls a batch until it is over or abandoned, through any outage of Postgres or Redis."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from psycopg import AsyncConnection, InterfaceError, OperationalError

from eventlog.backoff import Backoff
from projections.database.connection import Connection
from scoreline.reports.batch_status import STARTING, is_over
from scoreline.reports.batch_view import BatchView, read_batch_view
from scoreline.reports.fleet_status import FleetReader

POLL_INTERVAL = 1.0
"""Seconds; a view reads a few counters and a window of open evaluations."""


class Connectivity(StrEnum):
    """A change of the connection to PostgreSQL, with the text that reports it."""

    LOST = "PostgreSQL does not answer; waiting for it."
    RESTORED = "PostgreSQL answers again."


@dataclass(slots=True)
class BatchPoller:
    """Reads the view of one batch repeatedly."""

    postgres_url: str
    batch_id: str
    fleet: FleetReader
    on_connectivity: Callable[[Connectivity], None]
    """Called when the connection is lost and when it is restored."""
    pause: Callable[[float], Awaitable[None]] = asyncio.sleep
    _conn: Connection | None = None
    _abandoned: tuple[str, datetime] | None = None
    """The local run that no longer serves the batch, and when that was first read."""

    async def until_over(self, on_view: Callable[[BatchView], None]) -> BatchView:
        """Poll until the batch is over, or its local run has ended; raises `UnknownBatch`."""
        try:
            while True:
                view = await self.read()
                on_view(view)
                if is_over(view.snapshot) or self._is_abandoned(view):
                    return view
                await self.pause(POLL_INTERVAL)
        finally:
            await self.aclose()

    def _is_abandoned(self, view: BatchView) -> bool:
        """Whether nothing has served a local run's batch for so long that no process of it is starting."""
        run_id, now = view.snapshot.run_id, view.snapshot.now
        if not view.is_abandoned:
            self._abandoned = None
        elif self._abandoned is None or self._abandoned[0] != run_id:
            self._abandoned = run_id, now
        return self._abandoned is not None and now - self._abandoned[1] >= STARTING

    async def aclose(self) -> None:
        """Close the connection."""
        if self._conn:
            await self._conn.close()

    async def read(self) -> BatchView:
        """Read the batch once, as soon as the servers answer; raises `UnknownBatch`."""
        backoff, is_lost = Backoff(longest=2.0, first=0.1), False
        while True:
            try:
                conn = await self._connection()
                view = await read_batch_view(conn, self.batch_id, self.fleet, every_row=False)
            except (OperationalError, InterfaceError) as error:
                _raise_if_cancelled(error)
                if not is_lost:
                    self.on_connectivity(Connectivity.LOST)
                is_lost = True
                await self.pause(backoff.next())
                continue
            if is_lost:
                self.on_connectivity(Connectivity.RESTORED)
            return view

    async def _connection(self) -> Connection:
        if self._conn is None or self._conn.closed:
            self._conn = await AsyncConnection.connect(
                self.postgres_url, connect_timeout=3, application_name="scoreline batch"
            )
        return self._conn


def _raise_if_cancelled(error: Exception) -> None:
    """Raise the cancellation that caused this error: a cancelled query fails with an error of its own."""
    task = asyncio.current_task()
    if task and task.cancelling():
        raise asyncio.CancelledError from error
