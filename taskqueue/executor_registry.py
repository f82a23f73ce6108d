"""The contract of the executor registry: which executors are alive.

An executor registers a new instance each time it starts: an instance id is never used again. An instance
holds a lease that each heartbeat renews; it is alive until its last heartbeat is older than `INSTANCE_TTL`,
on the server's clock.
"""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Annotated, Protocol

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from domain.eligibility import Eligibility
from domain.ids import FLEET

INSTANCE_TTL = timedelta(seconds=20)
HEARTBEAT_INTERVAL = timedelta(seconds=5)
_INSTANCE = re.compile(r"-[0-9a-f]{8}$")
"""The suffix that an instance id adds to the executor's name."""


def executor_name(instance_id: str) -> str:
    """Return the name of the executor that an instance belongs to."""
    return _INSTANCE.sub("", instance_id)


_LENIENT = ConfigDict(extra="ignore", validate_by_name=True, defer_build=True)


@dataclass(frozen=True, slots=True, config=_LENIENT)
class ExecutorInstance:
    """The attributes that an executor publishes with each heartbeat."""

    instance_id: Annotated[str, Field(validation_alias="incarnation", serialization_alias="incarnation")]
    name: str
    host: str = ""
    pid: int = 0
    slots: int = 1
    busy: int = 0
    project: str | None = None
    labels: tuple[str, ...] = ()
    """The labels it declares."""
    run_id: str = FLEET
    """The local run that started it."""
    epochs: tuple[str, ...] = ()
    """For each shard of the log the epoch it has confirmed: all events it buffers are appended there."""

    @property
    def eligibility(self) -> Eligibility:
        """The batches it may serve."""
        return Eligibility(self.run_id, self.project, frozenset(self.labels))


class ExecutorRegistry(Protocol):
    """The executors that are alive."""

    async def heartbeat(self, instance: ExecutorInstance) -> None:
        """Renew the lease of an executor instance."""
        ...

    async def deregister(self, instance_id: str) -> None:
        """Remove an instance that has stopped."""
        ...

    async def filter_live(self, instance_ids: Iterable[str]) -> set[str]:
        """Return those of these instances that are alive."""
        ...

    async def live(self) -> list[ExecutorInstance]:
        """List all instances that are alive."""
        ...
