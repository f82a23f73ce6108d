"""The contract of presence: which executors are alive.

An executor is a new one each time it starts: its incarnation's name is never used again. It is alive
while its last heartbeat is younger than `LIFETIME`, on the server's clock.
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Protocol

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from domain.eligibility import Eligibility
from domain.ids import FLEET

LIFETIME = timedelta(seconds=20)
BEAT = timedelta(seconds=5)
_INSTANCE = re.compile(r"-[0-9a-f]{8}$")
"""What an executor's instance has behind the executor's name."""


def name_of(incarnation: str) -> str:
    """Return the name of the executor that an instance is of."""
    return _INSTANCE.sub("", incarnation)


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="ignore"))
class Presence:
    """What an executor says of itself with each heartbeat."""

    incarnation: str
    name: str
    host: str = ""
    pid: int = 0
    slots: int = 1
    busy: int = 0
    project: str | None = None
    labels: tuple[str, ...] = ()
    """What it declares."""
    run_id: str = FLEET
    """The local run it was started by."""
    epochs: tuple[str, ...] = ()
    """For each shard of the log the epoch that it has confirmed: all that it keeps there is on record."""

    @property
    def eligibility(self) -> Eligibility:
        """Which batches it may serve."""
        return Eligibility(self.run_id, self.project, frozenset(self.labels))


class Attendance(Protocol):
    """Who is there."""

    async def beat(self, presence: Presence) -> None:
        """Say that an executor is alive."""
        ...

    async def leave(self, incarnation: str) -> None:
        """Say that an executor has ended in good order."""
        ...

    async def live(self, incarnations: Iterable[str]) -> set[str]:
        """Return those of these executors that are alive."""
        ...

    async def present(self) -> list[Presence]:
        """List all executors that are alive."""
        ...
