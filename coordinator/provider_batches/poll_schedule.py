"""Poll schedules: exponential backoff with equal jitter. Pure; the jitter is passed in.

A schedule is not durable: after a restart everything is polled at once.
"""

from collections.abc import Callable, Collection
from datetime import timedelta

from coordinator.provider_batches.settings import ProviderBatchSettings


class PollSchedule:
    """The next poll of each name: the delay grows, and is never shorter than the provider's Retry-After."""

    def __init__(self, settings: ProviderBatchSettings, jitter: Callable[[], float]) -> None:
        self._first = settings.first_poll.total_seconds()
        self._factor = settings.poll_factor
        self._longest = settings.longest_poll.total_seconds()
        self._jitter = jitter
        self._waits: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def is_due(self, name: str, now: float) -> bool:
        """Whether a name is due to be polled; a new name always is."""
        return now >= self._due.get(name, now)

    def wait(
        self, name: str, now: float, *, at_least: timedelta | None = None, at_most: timedelta | None = None
    ) -> None:
        """Delay the next poll: half of the delay is fixed, half is jitter, so that polls spread out."""
        wait = min(self._waits.get(name, self._first), self._longest)
        self._waits[name] = min(wait * self._factor, self._longest)
        least = at_least.total_seconds() if at_least else 0.0
        longest = self._longest if at_most is None else at_most.total_seconds()
        self._due[name] = now + max(least, min(longest, wait * (0.5 + self._jitter() / 2)))

    def reset(self, name: str) -> None:
        """Poll at once, and start with the shortest delay again."""
        self._waits.pop(name, None)
        self._due.pop(name, None)

    def retain(self, names: Collection[str]) -> None:
        """Drop all names but these."""
        for gone in self._due.keys() - names:
            self.reset(gone)
