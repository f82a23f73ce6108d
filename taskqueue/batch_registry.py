"""The contract of the batch registry: the batches that executors may serve, and the spec of each."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Protocol

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from domain.ids import FLEET
from taskqueue.queue_layout import DEFAULT_PARTITION


class BatchState(StrEnum):
    """What executors do with the tasks of a batch."""

    RUNNING = "running"
    PAUSED = "paused"
    """Consume no further tasks; finish active ones."""
    STOPPED = "stopped"
    """Cancelled or expired: abort active tasks."""


_LENIENT = ConfigDict(extra="ignore", validate_by_name=True, defer_build=True)


@dataclass(frozen=True, slots=True, config=_LENIENT)
class BatchEntry:
    """One batch of the registry."""

    batch_id: str
    state: BatchState = BatchState.RUNNING
    priority: int = Field(default=1, ge=1, le=100)
    """Its share of the slots, relative to other batches."""
    project: str = "default"
    partitions: Annotated[
        tuple[str, ...], Field(validation_alias="channels", serialization_alias="channels")
    ] = (DEFAULT_PARTITION,)
    """The partitions of its queue, in the order in which executors serve them."""
    has_budget: bool = False
    """Whether its calls are reserved in its budget account before they are made."""
    requires: tuple[str, ...] = ()
    """Labels that an executor must declare to serve it."""
    run_id: str = FLEET
    """The local run whose executors alone serve it."""


class BatchRegistry(Protocol):
    """What executors read about batches; the coordinator can restore all of it from Postgres."""

    async def upsert(self, entry: BatchEntry, spec: bytes) -> None:
        """Register a batch, or replace its entry."""
        ...

    async def list(self) -> Sequence[BatchEntry]:
        """List all registered batches."""
        ...

    async def spec(self, batch_id: str) -> bytes | None:
        """Return a batch's spec; None if it is not registered."""
        ...

    async def unregister(self, batch_id: str) -> None:
        """Remove a batch with its spec, contexts and lanes."""
        ...

    async def put_contexts(self, batch_id: str, contexts: Mapping[str, bytes]) -> None:
        """Store the outputs that evaluations of a serial group need from earlier ones of the group."""
        ...

    async def contexts(self, batch_id: str, evaluation_ids: Sequence[str]) -> Sequence[bytes | None]:
        """Return the stored contexts of some evaluations."""
        ...

    async def set_lanes(self, batch_id: str, lanes: Mapping[str, Sequence[str]]) -> None:
        """Record which lanes each partition of a batch needs permits of, for status reports."""
        ...

    async def lanes(self, batch_id: str) -> Mapping[str, tuple[str, ...]]:
        """Return the lanes of each partition of a batch, as far as an executor has recorded them."""
        ...
