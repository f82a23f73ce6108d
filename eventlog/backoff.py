"""Pauses of a process that polls or reconnects; retries of evaluations: `domain/retry_policy.py`."""

import random


class Backoff:
    """Exponential backoff with jitter, from `first` to `longest` seconds."""

    def __init__(self, longest: float, *, first: float = 0.02) -> None:
        self._first, self._longest = first, longest
        self._pause = first

    def next(self) -> float:
        """Return the seconds to wait; the next pause is twice as long."""
        pause, self._pause = self._pause, min(self._pause * 2, self._longest)
        return pause * random.uniform(0.5, 1.0)  # noqa: S311 - spreads load, guards nothing

    def reset(self) -> None:
        """Start with the first pause again."""
        self._pause = self._first
