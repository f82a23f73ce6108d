"""One evaluation as the tables hold it: plain facts, for whoever tells its story."""

from dataclasses import dataclass
from datetime import date, datetime

from eventlog.codec import Entry
from eventlog.timeline import Cursor, Disposition
from projections.folds.scorecard import Scorecard


@dataclass(frozen=True, slots=True)
class StoredEvaluation:
    """An evaluation's row."""

    batch_id: str
    month: date
    cursor: Cursor
    owner: str | None
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class RecordedEvent:
    """An event of the log for good, and what became of it."""

    entry: Entry
    verdict: Disposition
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class RecordedBridge:
    """The fact that a closing event was applied although some sequences had not arrived."""

    attempt: int
    closing_sequence: int
    missing: tuple[range, ...]
    bridged_at: datetime


@dataclass(frozen=True, slots=True)
class RecordedRefusal:
    """One entry of the quarantine; the body whole where it is an event, else its beginning."""

    id: str
    reason: str
    detail: str
    entry_id: bytes
    size: int
    body: bytes
    quarantined_at: datetime


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """All that the tables hold of one evaluation."""

    standing: StoredEvaluation | None
    events: tuple[RecordedEvent, ...] = ()
    bridges: tuple[RecordedBridge, ...] = ()
    refusals: tuple[RecordedRefusal, ...] = ()
    refused: int = 0
    """How many the quarantine has; of very many, only the first are among the refusals."""
    scorecard: Scorecard | None = None
