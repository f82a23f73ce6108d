"""How a story is told from what the servers hold. Pure.

Postgres' word stands: an event it has is told with the verdict it has. The stream adds what Postgres
does not keep (duplicates) and what it does not have yet: that is walked on from Postgres' cursor, the
way a storage worker would, and told as not stored yet, or as waiting beyond a gap.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from eventlog import payloads as p
from eventlog.codec import Entry, QuarantineReason, RejectedEntry, decode_body
from eventlog.events import EventKey
from eventlog.lifecycle import ENDED
from eventlog.timeline import (
    Bridge,
    Cursor,
    Disposition,
    ReplayResult,
    ReplayStep,
    replay,
    was_committed_first,
)
from projections.folds.attempt_totals import AttemptTotals, Totals
from projections.folds.change import quarantine_row
from projections.folds.refold import PHASE_AFTER
from projections.folds.scorecard import Scorecard, scorecard
from projections.queries.evaluation_records import RecordedEvent, RecordedRefusal, StoredHistory
from scoreline.reports.replay.gaps import Bridging, open_gap, recorded_bridgings, worked_out_bridgings
from scoreline.reports.replay.lines import Fate, Line, Refusal, in_order, ranked
from scoreline.reports.replay.story import NOT_ASKED, Glance, Story

NOTHING = StoredHistory(standing=None)
ANOTHER_BODY = "another body"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the servers hold of one evaluation, and which of them were asked."""

    evaluation_id: str
    history: StoredHistory = NOTHING
    stream: Sequence[Entry] = ()
    refused: Sequence[RejectedEntry] = ()
    """Entries of the stream that can't be read as events."""
    postgres: Glance = NOT_ASKED
    redis: Glance = NOT_ASKED
    now_ms: int = 0
    """The log's clock."""
    patience: timedelta | None = None
    """Where the stream alone must tell: how long a storage worker waits before it bridges a gap."""

    @property
    def cursor(self) -> Cursor:
        """How far Postgres has applied the history."""
        return self.history.standing.cursor if self.history.standing else Cursor()

    @property
    def bridge_until_ms(self) -> int | None:
        """The arrival before which a gap has waited long enough."""
        if self.patience is None:
            return None
        return self.now_ms - int(self.patience.total_seconds() * 1000)


def tell(evidence: Evidence) -> Story:
    """Tell the story of an evaluation."""
    telling = _Telling(evidence)
    telling.take_history()
    telling.take_stream()
    return telling.story()


@dataclass(slots=True)
class _Telling:
    evidence: Evidence
    lines: list[Line] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    refused: set[str] = field(default_factory=set)
    first: dict[EventKey, Entry] = field(default_factory=dict)
    walked: ReplayResult = field(default_factory=lambda: ReplayResult(Cursor()))
    published: set[EventKey] = field(default_factory=set)

    def take_history(self) -> None:
        """Take Postgres' word."""
        history = self.evidence.history
        why = {refusal.entry_id: refusal.detail for refusal in history.refusals}
        for recorded in history.events:
            self.first[recorded.entry.key] = recorded.entry
            self.lines.append(_recorded(recorded, why))
        for kept in history.refusals:
            self.refusals.append(_kept(kept))
            self.refused.add(kept.id)
            if kept.reason == QuarantineReason.CONFLICT:
                entry = Entry(kept.entry_id, decode_body(kept.body), kept.body)
                self.lines.append(Line(entry, Fate.CONFLICT, note=ANOTHER_BODY))

    def take_stream(self) -> None:
        """Add what only the stream knows."""
        told = {line.entry_id for line in self.lines}
        unstorable = {r.entry_id for r in self.refusals if r.reason == QuarantineReason.UNSTORABLE}
        fresh: list[Entry] = []
        for entry in self.evidence.stream:
            known = self.first.setdefault(entry.key, entry)
            if entry.id in unstorable:
                self.lines.append(Line(entry, Fate.UNSTORABLE, note="the database refused it"))
            elif known is entry:
                fresh.append(entry)
            elif entry.id not in told and not self._is_publication(known, entry):
                self._repeat(known, entry)
        for refused in self.evidence.refused:
            self._refuse(refused)
        self._walk(fresh)

    def _is_publication(self, known: Entry, entry: Entry) -> bool:
        """Whether an opening that Postgres had first is merely being published, for the first time."""
        if not was_committed_first(known.id) or known.body != entry.body or entry.key in self.published:
            return False
        self.published.add(entry.key)
        return True

    def _repeat(self, known: Entry, entry: Entry) -> None:
        if known.body == entry.body or known.event == entry.event:
            self.lines.append(Line(entry, Fate.DUPLICATE))
            return
        attempt, sequence = entry.key
        detail = f"attempt {attempt}, sequence {sequence} is known with {ANOTHER_BODY}"
        is_new = self._refuse(RejectedEntry(entry.id, QuarantineReason.CONFLICT, detail, entry.body))
        self.lines.append(Line(entry, Fate.CONFLICT, pending=is_new and self._compares, note=ANOTHER_BODY))

    def _refuse(self, refused: RejectedEntry) -> bool:
        """List what will be in quarantine, unless it is there: the same thing is listed once."""
        key = quarantine_row(self.evidence.evaluation_id, refused).id
        if key in self.refused:
            return False
        self.refused.add(key)
        body = refused.body
        self.refusals.append(Refusal(refused.reason, refused.detail, refused.id, len(body), body, key))
        return True

    def _walk(self, fresh: Sequence[Entry]) -> None:
        """Walk on from what Postgres has, as a storage worker would."""
        evidence = self.evidence
        refused = frozenset(
            recorded.entry.event.attempt
            for recorded in evidence.history.events
            if recorded.entry.event.sequence == 0 and recorded.verdict is Disposition.REJECTED
        )
        self.walked = replay(
            evidence.cursor, fresh, bridge_until_ms=evidence.bridge_until_ms, rejected_attempts=refused
        )
        self.lines += lines_of(self.walked.steps, fresh, pending=self._compares)
        for step in self.walked.steps:
            if step.disposition is Disposition.REJECTED:
                self._refuse(
                    RejectedEntry(step.entry.id, QuarantineReason.ILLEGAL, step.detail, step.entry.body)
                )

    @property
    def _compares(self) -> bool:
        """Whether what is only in the stream is known to be missing from Postgres."""
        return self.evidence.postgres.answered

    def story(self) -> Story:
        """Put it all in order."""
        evidence, walked = self.evidence, self.walked
        numbered, refusals = ranked(self.lines, self.refusals)
        lines = in_order(numbered)
        ahead = walked.cursor if self._compares and walked.cursor != evidence.cursor else None
        return Story(
            evidence.evaluation_id,
            self._batch_id(),
            evidence.cursor if self._compares else walked.cursor,
            ahead,
            lines,
            self._bridgings(lines),
            open_gap(walked.gap),
            tuple(sorted(refusals, key=lambda refusal: refusal.rank)),
            max(evidence.history.refused, len(refusals)),
            evidence.history.scorecard or ending(lines, walked.cursor, walked.bridges),
            evidence.postgres,
            evidence.redis,
            now=datetime.fromtimestamp(evidence.now_ms / 1000, UTC) if evidence.now_ms else None,
        )

    def _bridgings(self, lines: Sequence[Line]) -> tuple[Bridging, ...]:
        made = recorded_bridgings(lines, self.evidence.history.bridges)
        patience = self.evidence.patience or timedelta()
        return (*made, *worked_out_bridgings(lines, self.walked.bridges, patience))

    def _batch_id(self) -> str | None:
        standing = self.evidence.history.standing
        if standing:
            return standing.batch_id
        return next((line.event.batch_id for line in self.lines), None)


def _recorded(recorded: RecordedEvent, why: Mapping[bytes, str]) -> Line:
    entry, verdict = recorded.entry, recorded.verdict
    phase = PHASE_AFTER[entry.event.type] if verdict is Disposition.APPLIED else None
    note = why.get(entry.id, "") if verdict is Disposition.REJECTED else ""
    return Line(entry, Fate(verdict.value), phase, note=note, recorded_at=recorded.recorded_at)


def _kept(kept: RecordedRefusal) -> Refusal:
    what = kept.reason, kept.detail, kept.entry_id, kept.size, kept.body
    return Refusal(*what, kept.id, kept.quarantined_at)


def lines_of(steps: Iterable[ReplayStep], entries: Iterable[Entry], *, pending: bool = False) -> list[Line]:
    """Tell what a walk made of some entries, each of a key of its own; those it did not judge wait."""
    judged = {step.entry.key: step for step in steps}
    lines = []
    for entry in entries:
        step = judged.get(entry.key)
        if step is None:
            lines.append(Line(entry, Fate.WAITING, pending=pending))
            continue
        phase = step.phase if step.disposition is Disposition.APPLIED else None
        lines.append(Line(entry, Fate(step.disposition.value), phase, pending=pending, note=step.detail))
    return lines


def ending(lines: Sequence[Line], cursor: Cursor, bridges: Iterable[Bridge]) -> Scorecard | None:
    """Fold the scorecard where the tables have none yet."""
    if cursor.phase not in ENDED:
        return None
    applied = sorted((n for n in lines if n.fate is Fate.APPLIED), key=lambda line: line.key)
    closing = next((n for n in applied if n.key == cursor[:2]), None)
    if closing is None:
        return None
    bridged = any(bridge.closing.key == cursor[:2] for bridge in bridges)
    return scorecard(closing.event, bridged=bridged, totals=_totals(closing, applied))


def _totals(closing: Line, applied: Iterable[Line]) -> Totals | None:
    """Add up the closing event's attempt, for a `completed` that does not repeat it."""
    if not isinstance(result := closing.event.data, p.Completed):
        return None
    totals = AttemptTotals()
    for line in applied:
        if line.event.attempt == closing.event.attempt:
            totals.add(line.event)
    return totals.of_completed(result, closing.entry.body)
