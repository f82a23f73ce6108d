"""Records of one evaluation as stored. Pure: replay builds its timeline from them."""

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
    """A stored event, and its disposition."""

    entry: Entry
    verdict: Disposition
    recorded_at: datetime


@dataclass(frozen=True, slots=True)
class RecordedBridge:
    """A bridged gap: a closing event was applied although some sequences had not arrived."""

    attempt: int
    closing_sequence: int
    missing: tuple[range, ...]
    bridged_at: datetime


@dataclass(frozen=True, slots=True)
class RecordedRefusal:
    """A quarantined entry; the body is whole where it is an event, otherwise its beginning."""

    id: str
    reason: str
    detail: str
    entry_id: bytes
    size: int
    body: bytes
    quarantined_at: datetime


@dataclass(frozen=True, slots=True)
class StoredHistory:
    """All records of one evaluation."""

    evaluation: StoredEvaluation | None
    events: tuple[RecordedEvent, ...] = ()
    bridges: tuple[RecordedBridge, ...] = ()
    refusals: tuple[RecordedRefusal, ...] = ()
    refused: int = 0
    """The number of quarantined entries; `refusals` holds only the first of very many."""
    scorecard: Scorecard | None = None
