"""Evaluations that a pass has brought to their end, for those who count them. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from eventlog import payloads as p
from eventlog.codec import RawEntry, RejectedEntry, read_entry
from eventlog.events import Event
from eventlog.timeline import arrival_ms
from projections.folds.scorecard import Scorecard
from storage_worker.sighting import Resolution


class Ended(NamedTuple):
    """An evaluation that has ended, and this worker has committed it."""

    card: Scorecard
    ending: Event
    head: str
    stream: Sequence[RawEntry]

    @property
    def batch_id(self) -> str:
        """The batch it is of."""
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


def ended_of(
    streams: Sequence[Sequence[RawEntry]], resolutions: Sequence[Resolution], lost: set[str]
) -> list[Ended]:
    """Pick those that have ended with what was committed."""
    return [
        Ended(change.scorecard, change.ending, change.head or "0-0", stream)
        for stream, change in zip(streams, (r.change for r in resolutions), strict=True)
        if change and change.ending and change.scorecard and change.moves
        if change.evaluation_id not in lost
    ]
