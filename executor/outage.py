"""What to do while the queue is away: say so once, wait a little longer each time, and go on."""

import asyncio
import logging

from eventlog.backoff import Backoff

logger = logging.getLogger(__name__)


class Outage:
    """One outage as all loops of an executor see it."""

    def __init__(self) -> None:
        self._under_way = False

    @property
    def is_under_way(self) -> bool:
        """Whether the queue is away, as far as anybody has noticed."""
        return self._under_way

    def begin(self, error: Exception) -> None:
        """Say that the queue is away, unless that was said."""
        if not self._under_way:
            logger.warning("the task queue is unavailable: waiting", extra={"error": str(error)})
        self._under_way = True

    def end(self) -> None:
        """Say that the queue is back, if it was away."""
        if self._under_way:
            logger.info("the task queue is back")
        self._under_way = False


class OutageBackoff:
    """The pauses of one loop."""

    def __init__(self, outage: Outage, *, longest: float = 1.0) -> None:
        self._outage = outage
        self._backoff = Backoff(longest, first=0.05)
        self._tried = False

    async def wait(self, error: Exception) -> None:
        """Pause after a failure."""
        self._tried = True
        self._outage.begin(error)
        await asyncio.sleep(self._backoff.next())

    def succeeded(self) -> None:
        """Start small again: it worked. What was asked before an outage began says nothing of its end."""
        if self._tried:
            self._tried = False
            self._outage.end()
            self._backoff.reset()
