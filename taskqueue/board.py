"""The contract of the board: which batches there are to work on, and what each of them is about."""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Protocol

from pydantic import ConfigDict, Field
from pydantic.dataclasses import dataclass

from domain.ids import FLEET
from taskqueue.lines import OWN


class BatchState(StrEnum):
    """What executors are to make of a batch's tasks."""

    RUNNING = "running"
    PAUSED = "paused"
    """Take no more; finish what is in hand."""
    STOPPED = "stopped"
    """Cancelled or out of time: abort what is in hand."""


@dataclass(frozen=True, slots=True, config=ConfigDict(extra="ignore"))
class Listing:
    """One batch on the board."""

    batch_id: str
    state: BatchState = BatchState.RUNNING
    priority: int = Field(default=1, ge=1, le=100)
    """Its share of the slots, relative to other batches."""
    project: str = "default"
    channels: tuple[str, ...] = (OWN,)
    """The lines in which its tasks wait, in the order in which they are served."""
    has_budget: bool = False
    """Whether its calls are reserved in its budget account before they are made."""
    requires: tuple[str, ...] = ()
    """Labels that an executor must declare to serve it."""
    run_id: str = FLEET
    """The local run whose executors serve it, and no others."""


class BatchBoard(Protocol):
    """What executors may see of batches; all of it can be written again from Postgres."""

    async def announce(self, listing: Listing, spec: bytes) -> None:
        """Put a batch up, or change its listing."""
        ...

    async def listings(self) -> list[Listing]:
        """List all batches that are up."""
        ...

    async def spec(self, batch_id: str) -> bytes | None:
        """Return a batch's spec; None if it is not up."""
        ...

    async def take_down(self, batch_id: str) -> None:
        """Remove a batch and all that was put up for it."""
        ...

    async def put_contexts(self, batch_id: str, contexts: Mapping[str, bytes]) -> None:
        """Leave for some evaluations what earlier ones of their group have come to."""
        ...

    async def contexts(self, batch_id: str, evaluation_ids: Sequence[str]) -> list[bytes | None]:
        """Return what was left for some evaluations."""
        ...

    async def note_lanes(self, batch_id: str, lanes: Mapping[str, Sequence[str]]) -> None:
        """Say which lanes each line of a batch has to ask; executors know, and people want to."""
        ...

    async def lanes(self, batch_id: str) -> Mapping[str, tuple[str, ...]]:
        """Return which lanes each line of a batch has to ask, as far as an executor has said so."""
        ...
