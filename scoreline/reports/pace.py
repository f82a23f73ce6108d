"""How fast a batch goes, and when it may be over: from snapshots, over a sliding window. Pure."""

from collections import deque
from datetime import datetime, timedelta

WINDOW = timedelta(seconds=20)
FAR = timedelta(days=999)
"""Beyond this nobody plans."""


class Pace:
    """Remembers the counts of the last seconds; times come with them, and no clock is read."""

    def __init__(self, window: timedelta = WINDOW) -> None:
        self._window = window
        self._seen: deque[tuple[datetime, int]] = deque()

    def observe(self, done: int, at: datetime) -> None:
        """Take note of how many are done; a clock that went back, or a count that fell, starts anew."""
        if self._seen and (at < self._seen[-1][0] or done < self._seen[-1][1]):
            self._seen.clear()
        self._seen.append((at, done))
        # The last one outside the window stays: the rate is measured from it.
        while len(self._seen) > 2 and self._seen[1][0] <= at - self._window:
            self._seen.popleft()

    @property
    def rate(self) -> float | None:
        """Evaluations a second; None until two moments were seen."""
        if not self._seen:
            return None
        (began, first), (now, last) = self._seen[0], self._seen[-1]
        seconds = (now - began).total_seconds()
        return (last - first) / seconds if seconds > 0 else None

    def eta(self, pending: int) -> timedelta | None:
        """Return how long the rest will take at this pace; None where it can't be told."""
        return remaining(pending, self.rate)


def remaining(pending: int, rate: float | None) -> timedelta | None:
    """Return how long so many take at a rate; None where there is no end in sight."""
    if pending <= 0:
        return timedelta()
    if not rate or pending / rate > FAR.total_seconds():
        return None
    return timedelta(seconds=pending / rate)


def average(done: int, lasted: timedelta) -> float | None:
    """Return evaluations a second since the beginning; None where no time has passed."""
    seconds = lasted.total_seconds()
    return done / seconds if seconds > 0 else None
