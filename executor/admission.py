"""Admission control: how many of the wanted tasks may be started now.

Limits (calls per minute, tokens, calls in flight, budgets) are checked before a task is fetched, so that no
slot waits for a limit: a task that may not start stays in the queue, where any executor can fetch it.
"""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from executor.lanes.permits import NO_PERMITS, Permits


@dataclass(frozen=True, slots=True)
class Admitted:
    """How many tasks may be started, by queue."""

    granted: Mapping[str, int]
    retry_in: Mapping[str, float] = field(default_factory=dict)
    """Queues that were granted less than was wanted, and seconds until another request makes sense."""
    metered: Collection[str] = ()
    """Queues whose grants are taken from other executors while they are held."""


class Admission(Protocol):
    """Grants capacity, by queue."""

    async def admit(self, turns: Sequence[str]) -> Admitted:
        """Reserve capacity for one task after the other; `turns` names the queue of each."""
        ...

    def take_permits(self, queue: str) -> Permits:
        """Return the permits that were granted for one task of a queue."""
        ...

    def return_unused(self, unused: Mapping[str, int]) -> None:
        """Return grants for which the queue had no task."""
        ...


class Unlimited:
    """Admits everything."""

    async def admit(self, turns: Sequence[str]) -> Admitted:
        """Grant every turn."""
        return Admitted(Counter(turns))

    def take_permits(self, queue: str) -> Permits:  # noqa: ARG002 - all queues are alike
        """Return no permit: none is needed."""
        return NO_PERMITS

    def return_unused(self, unused: Mapping[str, int]) -> None:
        """Do nothing."""
