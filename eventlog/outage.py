"""Outages of servers: logged once for a process, and waited out by each of its loops with backoff."""

import asyncio
import logging

from eventlog.backoff import Backoff

logger = logging.getLogger(__name__)


class Outage:
    """The state of a server as all loops of a process share it."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._is_under_way = False

    @property
    def is_under_way(self) -> bool:
        """Whether the last call of any loop found the server unavailable."""
        return self._is_under_way

    def begin(self, error: Exception) -> None:
        """Log the start of an outage, once."""
        if not self._is_under_way:
            logger.warning("%s unavailable: retrying", self._server, extra={"error": str(error)})
        self._is_under_way = True

    def end(self) -> None:
        """Log the end of an outage."""
        if self._is_under_way:
            logger.info("%s available again", self._server)
        self._is_under_way = False


class OutageBackoff:
    """The backoff of one loop."""

    def __init__(self, outage: Outage, *, longest: float = 1.0) -> None:
        self._outage = outage
        self._backoff = Backoff(longest, first=0.05)
        self._has_failed = False

    async def wait(self, error: Exception) -> None:
        """Wait after a failed call."""
        self._has_failed = True
        self._outage.begin(error)
        await asyncio.sleep(self._backoff.next())

    def succeeded(self) -> None:
        """Reset the backoff; only a call that followed a failed one of this loop ends the outage."""
        if self._has_failed:
            self._has_failed = False
            self._outage.end()
            self._backoff.reset()
