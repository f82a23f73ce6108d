"""Advice before a task is taken: how much of what is wanted may be started now.

Whoever limits something (calls a minute, tokens, calls at a time) is asked here, before a task is taken, so
that no slot ever sleeps on a limit: what may not start stays in the queue, where any executor can find it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from executor.lanes.permits import NO_PERMITS, Permits


@dataclass(frozen=True, slots=True)
class Admitted:
    """What may be started, queue by queue."""

    granted: Mapping[str, int]
    shut: Mapping[str, float] = field(default_factory=dict)
    """Queues that got less than was wanted, and in how many seconds it is worth asking again."""
    metered: Collection[str] = ()
    """Queues for which what was granted is taken from somebody else while it is held."""


class Admission(Protocol):
    """Lends capacity, queue by queue."""

    async def admit(self, turns: Sequence[str]) -> Admitted:
        """Reserve capacity for one task after the other; `turns` names the queue of each."""
        ...

    def lend(self, queue: str) -> Permits:
        """Hand over what was granted for one task of a queue."""
        ...

    def give_back(self, unused: Mapping[str, int]) -> None:
        """Return what was granted and found no task."""
        ...


class Unlimited:
    """Admits everybody."""

    async def admit(self, turns: Sequence[str]) -> Admitted:
        """Grant all."""
        return Admitted(Counter(turns))

    def lend(self, queue: str) -> Permits:  # noqa: ARG002 - all queues are alike
        """Need no permit."""
        return NO_PERMITS

    def give_back(self, unused: Mapping[str, int]) -> None:
        """Miss nothing."""
