"""A scene of one evaluation for tests: events arrive, a storage worker stores them, a replay reads them.

scene = Scene()
scene.arrive(*history("queued provisioning"))   appends events to the stream, in this order
await scene.store()                             runs one pass of a storage worker
scene.wait(seconds=31)                          advances all clocks
scene.replayed()                                returns the history of the evaluation
"""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from eventlog.codec import Entry, decode_body
from eventlog.events import Event, EventKey
from eventlog.timeline import Cursor, Disposition
from projections.folds.change import Change, EvaluationRow
from projections.queries.evaluation_records import (
    RecordedBridge,
    RecordedEvent,
    RecordedRefusal,
    StoredEvaluation,
    StoredHistory,
)
from projections.store.contract import CommitResult
from scoreline.reports.replay.history import NOT_QUERIED, EvaluationHistory, SourceStatus
from scoreline.reports.replay.history_builder import NOTHING, SourceRecords, build_history
from scoreline.reports.replay.origin import Origin
from scoreline.reports.replay.timeline_entry import REPEATS
from storage_worker.stream_diff import diff_stream
from tests.builders import EVALUATION
from tests.storage_world import GAP_TIMEOUT, World


class TimedWorld(World):
    """In-memory log and tables that record when gaps were bridged, as Postgres does."""

    def __init__(self) -> None:
        super().__init__()
        self.bridged_at: dict[tuple[str, int, int], datetime] = {}
        self._commit = self.tables.commit
        self.tables.commit = self._commit_timed  # type: ignore[method-assign]  # records the time, too

    def xadd_fields(self, evaluation_id: str, *fields: bytes) -> None:
        """Append any fields to a stream, then advance the clock by a millisecond."""
        super().xadd_fields(evaluation_id, *fields)
        self.now_ms += 1

    async def _commit_timed(self, changes: Sequence[Change]) -> CommitResult:
        committed = await self._commit(changes)
        for key in self.tables.bridges:
            self.bridged_at.setdefault(key, self.now)
        self.now_ms += 1
        return committed

    @property
    def now(self) -> datetime:
        """The current time, on the only clock."""
        return datetime.fromtimestamp(self.now_ms / 1000, UTC)


class Scene:
    """One evaluation with its own stream, tables and clock."""

    def __init__(self, world: "TimedWorld | None" = None, evaluation_id: str = EVALUATION) -> None:
        self.world = world or TimedWorld()
        self.evaluation_id = evaluation_id
        self.worker = self.world.storage()

    def arrive(self, *events: Event, pace: float = 0.0) -> None:
        """Append events in this order, `pace` seconds apart."""
        for event in events:
            self.world.xadd(event)
            self.wait(seconds=pace)

    def arrive_garbage(self, *fields: bytes) -> None:
        """Append an entry that can't be decoded."""
        self.world.xadd_fields(self.evaluation_id, *(fields or (b"event", b"{")))

    def wait(self, seconds: float) -> None:
        """Advance the clock."""
        self.world.wait(timedelta(seconds=seconds))

    async def store(self) -> None:
        """Run one pass of a storage worker."""
        await self.worker.store([self.evaluation_id])

    @property
    def now(self) -> datetime:
        """The current time, on the only clock."""
        return self.world.now

    def replayed(self, origin: Origin = Origin.BOTH) -> EvaluationHistory:
        """Return the history as read from one of the servers, or from both."""
        history = NOTHING if origin is Origin.REDIS else self._history()
        raw = self._raw() if origin is not Origin.POSTGRES else []
        blank = None
        if history.evaluation:
            blank = EvaluationRow(
                self.evaluation_id, history.evaluation.batch_id, history.evaluation.month, Cursor()
            )
        diff = diff_stream(self.evaluation_id, raw, blank)
        return build_history(
            SourceRecords(
                self.evaluation_id,
                history,
                diff.entries,
                diff.rejected,
                NOT_QUERIED
                if origin is Origin.REDIS
                else SourceStatus(queried=True, found=len(history.events)),
                NOT_QUERIED if origin is Origin.POSTGRES else SourceStatus(queried=True, found=len(raw)),
                self.world.now_ms,
                GAP_TIMEOUT if origin is Origin.REDIS else None,
            )
        )

    def _raw(self) -> list[tuple[bytes, Sequence[bytes]]]:
        streams = self.world.log._streams
        return list(streams[self.evaluation_id].entries) if self.evaluation_id in streams else []

    def _history(self) -> StoredHistory:
        tables = self.world.tables
        held = tables.evaluations.get(self.evaluation_id)
        refusals = tuple(
            RecordedRefusal(
                bad.id, bad.reason, bad.detail, bad.entry_id.encode(), len(bad.body), bad.body, self.now
            )
            for bad in tables.quarantined.values()
            if bad.evaluation_id == self.evaluation_id
        )
        if held is None:
            return StoredHistory(None, refusals=refusals, refused=len(refusals))
        row = held.row
        return StoredHistory(
            StoredEvaluation(row.batch_id, row.month, row.cursor, row.owner, held.ended_at),
            self._events(),
            self._bridges(),
            refusals,
            len(refusals),
            tables.scorecards.get(self.evaluation_id),
        )

    def _events(self) -> tuple[RecordedEvent, ...]:
        kept = [e for (key, *_), e in self.world.tables.events.items() if key == self.evaluation_id]
        return tuple(
            RecordedEvent(
                Entry(each.entry_id.encode(), decode_body(each.event), each.event),
                Disposition(each.verdict),
                self.now,
            )
            for each in sorted(kept, key=lambda each: (each.attempt, each.sequence))
        )

    def _bridges(self) -> tuple[RecordedBridge, ...]:
        return tuple(
            RecordedBridge(attempt, closing, missing, self.world.bridged_at[key, attempt, closing])
            for (key, attempt, closing), missing in sorted(self.world.tables.bridges.items())
            if key == self.evaluation_id
        )


def dispositions(replayed: EvaluationHistory) -> dict[EventKey, str]:
    """Return the disposition of each event, without duplicates and conflicts."""
    return {line.key: line.disposition.value for line in replayed.lines if line.disposition not in REPEATS}
