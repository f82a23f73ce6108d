"""How long to wait before asking again."""

import random


class Backoff:
    """Growing, jittered pauses."""

    def __init__(self, longest: float, *, first: float = 0.02) -> None:
        self._first, self._longest = first, longest
        self._pause = first

    def next(self) -> float:
        """Return how long to wait this time."""
        pause, self._pause = self._pause, min(self._pause * 2, self._longest)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    def reset(self) -> None:
        """Start small again."""
        self._pause = self._first
