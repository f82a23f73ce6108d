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
    """The result of a commit."""

    lost: set[str] = field(default_factory=set)
    """Evaluations that lost the compare-and-set: nothing of them was written."""
    newly_quarantined: int = 0
    progress: Progress = field(default_factory=Progress)
    """The sum of all added counters."""


class ProjectionStore(Protocol):
    """The transactional projection, as the storage worker uses it."""

    async def months(self, batch_ids: Sequence[str]) -> Mapping[str, date]:
        """Return each batch's month; an unknown batch is inserted as external."""
        ...

    async def rows(self, evaluation_ids: Sequence[str]) -> Mapping[str, EvaluationRow]:
        """Return the rows of those of these evaluations that have one."""
        ...

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        """Return all stored events of some evaluations."""
        ...

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        """Commit all changes in one transaction; each row moves by compare-and-set on its cursor."""
        ...

    async def quarantine(self, refused: Sequence[QuarantineRow]) -> int:
        """Insert rejected entries idempotently; returns how many were new."""
        ...

    async def open_evaluations(self, *, after: str, unchanged_for: float, limit: int) -> Sequence[str]:
        """Return a page (keyset pagination) of open evaluations unchanged for so many seconds."""
        ...
