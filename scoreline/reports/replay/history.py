"""The history of one evaluation: every entry by attempt and sequence. Pure."""

from dataclasses import dataclass, replace
from datetime import datetime

from eventlog import payloads as p
from eventlog.events import Event
from eventlog.timeline import Cursor
from projections.folds.scorecard import Scorecard
from scoreline.reports.replay.gaps import Bridging, OpenGap
from scoreline.reports.replay.timeline_entry import (
    REPEATS,
    EntryDisposition,
    RejectedTimelineEntry,
    TimelineEntry,
)


@dataclass(frozen=True, slots=True)
class SourceStatus:
    """The result of a query to one of the servers."""

    queried: bool = False
    found: int = 0
    problem: str = ""

    @property
    def answered(self) -> bool:
        """Whether it was queried and answered, so that nothing found means that it has nothing."""
        return self.queried and not self.problem


NOT_QUERIED = SourceStatus()


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt with its entries, bridges and open gap."""

    number: int
    lines: tuple[TimelineEntry, ...]
    bridges: tuple[Bridging, ...]
    gap: OpenGap | None

    @property
    def opening(self) -> Event | None:
        """The event that opened it, if it has arrived."""
        firsts = (n.event for n in self.lines if n.event.sequence == 0 and n.disposition not in REPEATS)
        return next(firsts, None)

    @property
    def reason(self) -> str | None:
        """Why it was opened, if that is known."""
        opening = self.opening
        if opening is None:
            return None
        return opening.data.reason.value if isinstance(opening.data, p.Queued) else opening.type

    @property
    def owner(self) -> str | None:
        """The instance whose claim was accepted."""
        for line in self.lines:
            data = line.event.data
            if isinstance(data, p.Provisioning) and line.disposition is EntryDisposition.APPLIED:
                return data.executor
        return None


@dataclass(frozen=True, slots=True)
class EvaluationHistory:
    """The history of one evaluation from all queried sources."""

    evaluation_id: str
    batch_id: str | None
    cursor: Cursor
    """How far its history is applied."""
    ahead: Cursor | None = None
    """The cursor once the entries that are not stored yet are applied."""
    lines: tuple[TimelineEntry, ...] = ()
    bridges: tuple[Bridging, ...] = ()
    gap: OpenGap | None = None
    refusals: tuple[RejectedTimelineEntry, ...] = ()
    refused: int = 0
    """The number of rejected entries; `refusals` may hold only the first."""
    scorecard: Scorecard | None = None
    postgres: SourceStatus = NOT_QUERIED
    redis: SourceStatus = NOT_QUERIED
    now: datetime | None = None
    """The time of the read, on the log's clock."""

    @property
    def is_known(self) -> bool:
        """Whether any source has an entry of the evaluation."""
        return bool(self.lines or self.refusals)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """The history attempt by attempt."""
        return tuple(self._attempt(number) for number in sorted({n.event.attempt for n in self.lines}))

    def _attempt(self, number: int) -> Attempt:
        return Attempt(
            number,
            tuple(line for line in self.lines if line.event.attempt == number),
            tuple(bridge for bridge in self.bridges if bridge.attempt == number),
            self.gap if self.gap and self.gap.attempt == number else None,
        )

    @property
    def arrivals(self) -> int:
        """The number of entries that have arrived, by the highest rank."""
        ranks = [line.rank for line in self.lines] + [refusal.rank for refusal in self.refusals]
        return max(ranks, default=0)

    @property
    def case_id(self) -> str | None:
        """The id of its test case."""
        cases = (n.event.data.case.id for n in self.lines if isinstance(n.event.data, p.Queued))
        return next(cases, None)

    @property
    def began_at(self) -> datetime | None:
        """When its first event happened."""
        return self.lines[0].event.occurred_at if self.lines else None

    @property
    def ended_at(self) -> datetime | None:
        """When the event that ended it happened."""
        return self.scorecard.ended_at if self.scorecard else None

    @property
    def is_stored(self) -> bool:
        """Whether Postgres has every entry."""
        return not any(line.pending for line in self.lines)

    def only(self, attempt: int) -> "EvaluationHistory":
        """Return the history with the entries of one attempt only."""
        one = self._attempt(attempt)
        return replace(self, lines=one.lines, bridges=one.bridges, gap=one.gap)
