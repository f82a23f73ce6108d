"""Builds the history of an evaluation from the records of Postgres and Redis. Pure.

Postgres is authoritative: an event that it has keeps its recorded disposition. The stream adds duplicates,
which Postgres does not keep, and entries that are not stored yet: these are replayed from Postgres' cursor,
as a storage worker would, and marked as not stored yet, or as waiting beyond a gap.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from eventlog.codec import Entry, QuarantineReason, RejectedEntry, decode_body
from eventlog.events import EventKey
from eventlog.lifecycle import ENDED
from eventlog.timeline import (
    Bridge,
    Cursor,
    Disposition,
    ReplayResult,
    ReplayStep,
    first_of_each_key,
    replay,
    was_committed_first,
)
from projections.folds.change import quarantine_row
from projections.folds.refold import PHASE_AFTER
from projections.folds.scorecard import AttemptTotals, Scorecard, scorecard
from projections.queries.evaluation_records import RecordedEvent, RecordedRefusal, StoredHistory
from scoreline.reports.replay.gaps import Bridging, open_gap, recorded_bridgings, worked_out_bridgings
from scoreline.reports.replay.history import NOT_QUERIED, EvaluationHistory, SourceStatus
from scoreline.reports.replay.timeline_entry import (
    EntryDisposition,
    RejectedTimelineEntry,
    TimelineEntry,
    in_order,
    ranked,
)

NOTHING = StoredHistory(evaluation=None)
ANOTHER_BODY = "another body"


@dataclass(frozen=True, slots=True)
class SourceRecords:
    """The records of one evaluation, and which servers were queried."""

    evaluation_id: str
    stored: StoredHistory = NOTHING
    stream: Sequence[Entry] = ()
    refused: Sequence[RejectedEntry] = ()
    """Entries of the stream that can't be decoded as events."""
    postgres: SourceStatus = NOT_QUERIED
    redis: SourceStatus = NOT_QUERIED
    now_ms: int = 0
    """The log's clock."""
    gap_timeout: timedelta | None = None
    """How long a storage worker waits before it bridges a gap; None where Postgres was read."""

    @property
    def cursor(self) -> Cursor:
        """How far Postgres has applied the history."""
        return self.stored.evaluation.cursor if self.stored.evaluation else Cursor()

    @property
    def bridge_until_ms(self) -> int | None:
        """Gaps that opened before this time are bridged; None where Postgres decides."""
        if self.gap_timeout is None:
            return None
        return self.now_ms - int(self.gap_timeout.total_seconds() * 1000)


def build_history(records: SourceRecords) -> EvaluationHistory:
    """Return the history of an evaluation."""
    builder = _HistoryBuilder(records)
    builder.add_stored()
    builder.add_stream()
    return builder.build()


@dataclass(slots=True)
class _HistoryBuilder:
    records: SourceRecords
    lines: list[TimelineEntry] = field(default_factory=list)
    refusals: list[RejectedTimelineEntry] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    result: ReplayResult = field(default_factory=lambda: ReplayResult(Cursor()))
    published: set[EventKey] = field(default_factory=set)

    def add_stored(self) -> None:
        """Add the events and rejected entries that Postgres has."""
        stored = self.records.stored
        details = {refusal.entry_id: refusal.detail for refusal in stored.refusals}
        for recorded in stored.events:
            self.lines.append(_recorded(recorded, details))
        for kept in stored.refusals:
            self.refusals.append(_kept(kept))
            self.refused.add(kept.id)
            if kept.reason == QuarantineReason.CONFLICT:
                entry = Entry(kept.entry_id, decode_body(kept.body), kept.body)
                self.lines.append(TimelineEntry(entry, EntryDisposition.CONFLICT, note=ANOTHER_BODY))

    def add_stream(self) -> None:
        """Add the entries that only the stream has."""
        stored = {line.entry_id for line in self.lines}
        unstorable = {r.entry_id for r in self.refusals if r.reason == QuarantineReason.UNSTORABLE}
        recorded = [each.entry for each in self.records.stored.events]
        first = first_of_each_key([*recorded, *self.records.stream])
        fresh: list[Entry] = []
        for entry in self.records.stream:
            known = first[entry.key]
            if entry.id in unstorable:
                self.lines.append(
                    TimelineEntry(entry, EntryDisposition.UNSTORABLE, note="the database refused it")
                )
            elif known is entry:
                fresh.append(entry)
            elif entry.id not in stored and not self._is_publication(known, entry):
                self._repeat(known, entry)
        for refused in self.records.refused:
            self._refuse(refused)
        self._replay(fresh)

    def _is_publication(self, known: Entry, entry: Entry) -> bool:
        """Whether the entry is the first publication of an opening that was committed to Postgres first."""
        if not was_committed_first(known.id) or known.body != entry.body or entry.key in self.published:
            return False
        self.published.add(entry.key)
        return True

    def _repeat(self, known: Entry, entry: Entry) -> None:
        if known.body == entry.body or known.event == entry.event:
            self.lines.append(TimelineEntry(entry, EntryDisposition.DUPLICATE))
            return
        attempt, sequence = entry.key
        detail = f"attempt {attempt}, sequence {sequence} is known with {ANOTHER_BODY}"
        is_new = self._refuse(RejectedEntry(entry.id, QuarantineReason.CONFLICT, detail, entry.body))
        self.lines.append(
            TimelineEntry(
                entry, EntryDisposition.CONFLICT, pending=is_new and self._compares, note=ANOTHER_BODY
            )
        )

    def _refuse(self, refused: RejectedEntry) -> bool:
        """Add an entry that will be quarantined, unless it is listed already; returns whether it is new."""
        key = quarantine_row(self.records.evaluation_id, refused).id
        if key in self.refused:
            return False
        self.refused.add(key)
        body = refused.body
        self.refusals.append(
            RejectedTimelineEntry(refused.reason, refused.detail, refused.id, len(body), body, key)
        )
        return True

    def _replay(self, fresh: Sequence[Entry]) -> None:
        """Replay new entries from Postgres' cursor, as a storage worker would."""
        records = self.records
        refused = frozenset(
            recorded.entry.event.attempt
            for recorded in records.stored.events
            if recorded.entry.event.sequence == 0 and recorded.verdict is Disposition.REJECTED
        )
        self.result = replay(
            records.cursor, fresh, bridge_until_ms=records.bridge_until_ms, rejected_attempts=refused
        )
        self.lines += lines_of(self.result.steps, fresh, pending=self._compares)
        for step in self.result.steps:
            if step.disposition is Disposition.REJECTED:
                self._refuse(
                    RejectedEntry(step.entry.id, QuarantineReason.ILLEGAL, step.detail, step.entry.body)
                )

    @property
    def _compares(self) -> bool:
        """Whether Postgres was read, so that an entry only in the stream is not stored yet."""
        return self.records.postgres.answered

    def build(self) -> EvaluationHistory:
        """Return the history, with its entries ranked and in order."""
        records, result = self.records, self.result
        numbered, refusals = ranked(self.lines, self.refusals)
        lines = in_order(numbered)
        ahead = result.cursor if self._compares and result.cursor != records.cursor else None
        return EvaluationHistory(
            records.evaluation_id,
            self._batch_id(),
            records.cursor if self._compares else result.cursor,
            ahead,
            lines,
            self._bridgings(lines),
            open_gap(result.gap),
            tuple(sorted(refusals, key=lambda refusal: refusal.rank)),
            max(records.stored.refused, len(refusals)),
            records.stored.scorecard or ending(lines, result.cursor, result.bridges),
            records.postgres,
            records.redis,
            now=datetime.fromtimestamp(records.now_ms / 1000, UTC) if records.now_ms else None,
        )

    def _bridgings(self, lines: Sequence[TimelineEntry]) -> tuple[Bridging, ...]:
        recorded = recorded_bridgings(lines, self.records.stored.bridges)
        gap_timeout = self.records.gap_timeout or timedelta()
        return (*recorded, *worked_out_bridgings(lines, self.result.bridges, gap_timeout))

    def _batch_id(self) -> str | None:
        evaluation = self.records.stored.evaluation
        if evaluation:
            return evaluation.batch_id
        return next((line.event.batch_id for line in self.lines), None)


def _recorded(recorded: RecordedEvent, details: Mapping[bytes, str]) -> TimelineEntry:
    entry, verdict = recorded.entry, recorded.verdict
    phase = PHASE_AFTER[entry.event.type] if verdict is Disposition.APPLIED else None
    note = details.get(entry.id, "") if verdict is Disposition.REJECTED else ""
    return TimelineEntry(
        entry, EntryDisposition(verdict.value), phase, note=note, recorded_at=recorded.recorded_at
    )


def _kept(kept: RecordedRefusal) -> RejectedTimelineEntry:
    entry = kept.reason, kept.detail, kept.entry_id, kept.size, kept.body
    return RejectedTimelineEntry(*entry, kept.id, kept.quarantined_at)


def lines_of(
    steps: Iterable[ReplayStep], entries: Iterable[Entry], *, pending: bool = False
) -> list[TimelineEntry]:
    """Return the entries with the dispositions of a replay; entries without a step wait."""
    by_key = {step.entry.key: step for step in steps}
    lines = []
    for entry in entries:
        step = by_key.get(entry.key)
        if step is None:
            lines.append(TimelineEntry(entry, EntryDisposition.WAITING, pending=pending))
            continue
        phase = step.phase if step.disposition is Disposition.APPLIED else None
        lines.append(
            TimelineEntry(
                entry, EntryDisposition(step.disposition.value), phase, pending=pending, note=step.detail
            )
        )
    return lines


def ending(lines: Sequence[TimelineEntry], cursor: Cursor, bridges: Iterable[Bridge]) -> Scorecard | None:
    """Return the scorecard folded from the entries; None before the end."""
    if cursor.phase not in ENDED:
        return None
    applied = sorted(
        (n for n in lines if n.disposition is EntryDisposition.APPLIED), key=lambda line: line.key
    )
    closing = next((n for n in applied if n.key == cursor[:2]), None)
    if closing is None:
        return None
    bridged = any(bridge.closing.key == cursor[:2] for bridge in bridges)
    totals = AttemptTotals()
    for line in applied:
        if line.event.attempt == closing.event.attempt:
            totals.add(line.event)
    return scorecard(closing.event, bridged=bridged, body=closing.entry.body, totals=totals)
