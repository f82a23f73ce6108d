"""Advice before a task is taken: how much of what is wanted may be started now.

Whoever limits something (calls a minute, tokens, money) is asked here, before a task is taken, so that no
slot ever sleeps on a limit: what may not start stays in the queue, where any executor can find it.
"""

from collections.abc import Mapping
from typing import Protocol


class Admission(Protocol):
    """Lends capacity, batch by batch."""

    async def admit(self, wanted: Mapping[str, int]) -> Mapping[str, int]:
        """Reserve capacity for up to so many evaluations of each batch; returns what is granted."""
        ...

    async def give_back(self, unused: Mapping[str, int]) -> None:
        """Return what was granted and found no task."""
        ...


class Unlimited:
    """Admits everybody."""

    async def admit(self, wanted: Mapping[str, int]) -> Mapping[str, int]:
        """Grant all."""
        return wanted

    async def give_back(self, unused: Mapping[str, int]) -> None:
        """Miss nothing."""
