"""The rate of a batch and its estimated end, from snapshots over a sliding window. Pure."""

from collections import deque
from datetime import datetime, timedelta

WINDOW = timedelta(seconds=20)
FAR = timedelta(days=999)
"""The longest estimate that is shown."""


class Pace:
    """Keeps the samples of a sliding window; the caller passes the time in, no clock is read."""

    def __init__(self, window: timedelta = WINDOW) -> None:
        self._window = window
        self._samples: deque[tuple[datetime, int]] = deque()

    def observe(self, done: int, at: datetime) -> None:
        """Add a sample; a clock that went back, or a count that fell, starts a new window."""
        if self._samples and (at < self._samples[-1][0] or done < self._samples[-1][1]):
            self._samples.clear()
        self._samples.append((at, done))
        # The last sample before the window stays: the rate is measured from it.
        while len(self._samples) > 2 and self._samples[1][0] <= at - self._window:
            self._samples.popleft()

    @property
    def rate(self) -> float | None:
        """Evaluations per second; None before two samples of different times."""
        if not self._samples:
            return None
        (began, first), (now, last) = self._samples[0], self._samples[-1]
        seconds = (now - began).total_seconds()
        return (last - first) / seconds if seconds > 0 else None

    def eta(self, pending: int) -> timedelta | None:
        """Return the estimated time until the pending evaluations end; None where there is no rate."""
        return remaining(pending, self.rate)


def remaining(pending: int, rate: float | None) -> timedelta | None:
    """Return the time that `pending` evaluations take at a rate; None without a rate or beyond `FAR`."""
    if pending <= 0:
        return timedelta()
    if not rate or pending / rate > FAR.total_seconds():
        return None
    return timedelta(seconds=pending / rate)


def average(done: int, lasted: timedelta) -> float | None:
    """Return evaluations per second since the start; None where no time has passed."""
    seconds = lasted.total_seconds()
    return done / seconds if seconds > 0 else None
