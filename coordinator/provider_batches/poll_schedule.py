"""How long to wait between two looks at the same thing: pure but for the luck it is given.

What is remembered here may be lost: the next one begins by looking at once.
"""

from collections.abc import Callable, Collection
from datetime import timedelta

from coordinator.provider_batches.settings import ProviderBatchSettings


class PollSchedule:
    """When to look at what again, by name: later and later, and no sooner than a provider asks for."""

    def __init__(self, settings: ProviderBatchSettings, jitter: Callable[[], float]) -> None:
        self._first = settings.first_poll.total_seconds()
        self._factor = settings.poll_factor
        self._longest = settings.longest_poll.total_seconds()
        self._jitter = jitter
        self._waits: dict[str, float] = {}
        self._due: dict[str, float] = {}

    def is_due(self, name: str, now: float) -> bool:
        """Whether it is time to look; at what was never looked at, always."""
        return now >= self._due.get(name, now)

    def wait(self, name: str, now: float, *, at_least: timedelta | None = None) -> None:
        """Look again later: half of the wait is certain, half is luck, so that not all look at once."""
        wait = min(self._waits.get(name, self._first), self._longest)
        self._waits[name] = min(wait * self._factor, self._longest)
        least = at_least.total_seconds() if at_least else 0.0
        self._due[name] = now + max(least, wait * (0.5 + self._jitter() / 2))

    def reset(self, name: str) -> None:
        """Begin anew: something has happened."""
        self._waits.pop(name, None)
        self._due.pop(name, None)

    def retain(self, names: Collection[str]) -> None:
        """Forget what is over."""
        for gone in self._due.keys() - names:
            self.reset(gone)
