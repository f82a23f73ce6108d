"""The contract of the tables, kept by Postgres and by the memory form alike."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Protocol

from eventlog.events import EventKey
from projections.folds.change import Change, EvaluationRow, QuarantineRow, StoredEvent
from projections.folds.progress import Progress


@dataclass(slots=True)
class CommitResult:
    """What a commit came to."""

    lost: set[str] = field(default_factory=set)
    """Evaluations that somebody else had moved meanwhile: nothing of theirs was written."""
    newly_quarantined: int = 0
    progress: Progress = field(default_factory=Progress)
    """What was added to the counters of all batches."""


class ProjectionStore(Protocol):
    """What the storage worker needs of a database."""

    async def months(self, batch_ids: Sequence[str]) -> Mapping[str, date]:
        """Return each batch's month, making external batches of those nobody submitted."""
        ...

    async def rows(self, evaluation_ids: Sequence[str]) -> Mapping[str, EvaluationRow]:
        """Return the evaluations that have a row."""
        ...

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        """Return all events the log for good has of some evaluations."""
        ...

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        """Write everything in one transaction; rows move only if they are still as they were read."""
        ...

    async def quarantine(self, refused: Sequence[QuarantineRow]) -> int:
        """Keep what could not be taken as an event; returns how many were new."""
        ...

    async def open_evaluations(self, *, after: str, unchanged_for: float, limit: int) -> Sequence[str]:
        """Return a page of evaluations that have not ended nor moved for so many seconds."""
        ...
