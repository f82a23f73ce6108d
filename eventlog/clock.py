"""The one place that reads the wall clock; pure modules get `now` passed in.

The wall clock of a host dates what happens there, for people to read. What is compared with a time that
another process has stored is compared on the clock of the server that stores it: see "Clocks" in
ARCHITECTURE.md.
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta


def utc_now() -> datetime:
    """Return the current time in UTC."""
    return datetime.now(UTC)  # noqa: TID251 - this is the one place


class ClockNotSynchronized(RuntimeError):  # noqa: N818 - what is the matter
    """A server's time was asked for before it had been read once."""


class ServerClock:
    """A server's time, read now and then; in between the monotonic clock carries it on.

    The wall clock of this host, and every change of it, has no part in it.
    """

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._read: tuple[datetime, float] | None = None

    def synchronize(self, server_time: datetime) -> None:
        """Take over the time that a server has just returned."""
        self._read = server_time, self._monotonic()

    def now(self) -> datetime:
        """Return the server's time."""
        if self._read is None:
            raise ClockNotSynchronized("the server's time has not been read yet")
        server_time, at = self._read
        return server_time + timedelta(seconds=self._monotonic() - at)
