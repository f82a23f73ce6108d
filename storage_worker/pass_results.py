"""The results of a pass: counts for health and metrics, and the evaluations that it ended. Pure."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

from eventlog import payloads as p
from eventlog.codec import RawEntry, RejectedEntry, read_entry
from eventlog.events import Event
from eventlog.timeline import arrival_ms
from projections.folds.scorecard import Scorecard
from storage_worker.stream_diff import Resolution


@dataclass(slots=True)
class PassCounts:
    """Counters of one pass, or of all passes since the start."""

    passes: int = 0
    events: Counter[str] = field(default_factory=Counter)
    duplicates: int = 0
    bridged: int = 0
    quarantined: int = 0
    lost_races: int = 0
    gaps_open: int = 0
    gaps_warned: int = 0
    reordered: int = 0

    def count(self, resolutions: Iterable[Resolution], lost: set[str]) -> None:
        """Add what a pass has committed."""
        self.passes += 1
        self.lost_races += len(lost)
        for resolution in resolutions:
            change = resolution.change
            if change is None or change.evaluation_id in lost:
                continue
            self.duplicates += resolution.duplicates
            self.bridged += len(change.bridges)
            self.reordered += change.reordered
            self.events.update(event.verdict for event in (*change.events, *change.side_events))

    def add(self, other: "PassCounts") -> None:
        """Add the counts of another pass."""
        self.passes += other.passes
        self.events.update(other.events)
        self.duplicates += other.duplicates
        self.bridged += other.bridged
        self.quarantined += other.quarantined
        self.lost_races += other.lost_races
        self.reordered += other.reordered

    def as_dict(self) -> dict[str, object]:
        """Return the counts as plain data."""
        return asdict(self) | {"events": dict(self.events)}  # asdict spoils a Counter on Python 3.11


class EndedEvaluation(NamedTuple):
    """An evaluation whose end this worker has committed."""

    card: Scorecard
    ending: Event
    head: str
    stream: Sequence[RawEntry]

    @property
    def batch_id(self) -> str:
        """The batch it belongs to."""
        return self.card.batch_id

    @property
    def duration_ms(self) -> int:
        """From the arrival of the first event to that of the last, on the log's clock."""
        return max(0, arrival_ms(self.head.encode()) - arrival_ms(self.stream[0][0]))

    @property
    def case_id(self) -> str | None:
        """The test case, as its opening has it; None if that is gone from the stream."""
        for raw in self.stream:
            read = read_entry(self.card.evaluation_id, raw)
            if not isinstance(read, RejectedEntry) and isinstance(read.event.data, p.Queued):
                return read.event.data.case.id
        return None


def ended_evaluations(
    streams: Sequence[Sequence[RawEntry]], resolutions: Sequence[Resolution], lost: set[str]
) -> list[EndedEvaluation]:
    """Select the evaluations whose end was committed by this pass."""
    return [
        EndedEvaluation(change.scorecard, change.ending, change.head or "0-0", stream)
        for stream, change in zip(streams, (r.change for r in resolutions), strict=True)
        if change and change.ending and change.scorecard and change.moves
        if change.evaluation_id not in lost
    ]
