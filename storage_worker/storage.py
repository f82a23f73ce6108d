"""The path of a batch of wake-ups: read, order, check, commit, and only then acknowledge.

    unique ids → one pipelined read of their streams → rows → what is new (stream_diff.py)
      → one transaction → commit marks for the writers → the consumer acknowledges

It is a transactional projection with at-least-once delivery: events, scorecards and counters are committed
together, guarded by a compare-and-set on each evaluation's cursor (optimistic concurrency), so a repeated
wake-up is idempotent and two workers may read the same stream.

The rows are read after the streams: an attempt is opened in Postgres before it appears in its stream,
so an event never meets a row older than its own opening. No evaluation is kept in memory between two
batches; the stream is the buffer, and every worker reads the same one.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import date, timedelta
from time import monotonic

from eventlog.backoff import Backoff
from eventlog.clock import utc_now
from eventlog.codec import QuarantineReason, RawEntry, RejectedEntry
from eventlog.events import EventKey
from eventlog.keys import shard_of
from eventlog.lifecycle import ENDED
from eventlog.log import CommitMark, LogReader, LogUnavailable
from eventlog.timeline import Cursor
from projections.database.errors import DatabaseUnavailable, UnstorableData
from projections.folds.change import Change, EvaluationRow, QuarantineRow, StoredEvent, quarantine_row
from projections.store.contract import CommitResult, ProjectionStore
from storage_worker import telemetry
from storage_worker.gaps import GapBreaker, GapMonitor, GapPolicy
from storage_worker.metrics import POSTGRES, REDIS, StorageMetrics
from storage_worker.pass_results import EndedEvaluation, PassCounts, ended_evaluations
from storage_worker.stream_diff import MAX_ENTRIES, Resolution, StreamDiff, diff_stream, resolve
from storage_worker.telemetry import BatchModes

logger = logging.getLogger(__name__)

MAX_SLICE = 2_000
"""Evaluations in one transaction."""
SLICE_BYTES = 32 * 1024 * 1024
"""What the streams of one slice should come to, going by those of the slice before."""
CONCURRENT_PASSES = 2
"""One waits for its servers while the other uses the processor."""


class RequestCoalescer:
    """Coalesces requests: those submitted while passes run share the next pass.

    A pass costs much the same for one evaluation as for a hundred. Without load no request waits.
    """

    def __init__(
        self, run: Callable[[Sequence[str]], Awaitable[None]], *, limit: int = CONCURRENT_PASSES
    ) -> None:
        self._run = run
        self._slots = asyncio.Semaphore(limit)
        self._pending: dict[str, None] = {}
        self._next: asyncio.Task[None] | None = None

    async def submit(self, evaluation_ids: Sequence[str]) -> None:
        """Have evaluations stored by the next pass; raises what that pass raises."""
        self._pending |= dict.fromkeys(evaluation_ids)
        if self._next is None:
            self._next = asyncio.create_task(self._pass())
        # Shielded: one caller that is cancelled must not end the pass of the others.
        await asyncio.shield(self._next)

    async def _pass(self) -> None:
        async with self._slots:
            pending, self._pending, self._next = list(self._pending), {}, None
            await self._run(pending)


class Storage:
    """Projects evaluations' streams into the tables."""

    def __init__(  # noqa: PLR0913 - three ports and the gap policy
        self,
        log: LogReader,
        tables: ProjectionStore,
        gap_policy: GapPolicy,
        *,
        breaker: GapBreaker | None = None,
        clock: Callable[[], float] = monotonic,
        modes: BatchModes | None = None,
    ) -> None:
        self._gaps = GapMonitor(gap_policy, breaker or GapBreaker(), clock)
        self.counts = PassCounts()
        self.metrics = StorageMetrics(clock, lambda: self._gaps.is_degraded)
        self.outage: str | None = None
        self._log = log
        self._tables = tables
        self._clock = clock
        self._modes = modes or BatchModes()
        self._mean_bytes = 4_096.0
        self._interrupted: list[str] = []
        self._coalescer = RequestCoalescer(self.store)

    @property
    def is_degraded(self) -> bool:
        """Whether the breaker is open: gaps are bridged without waiting because there are too many."""
        return self._gaps.is_open

    async def process(self, evaluation_ids: Sequence[str], rejected: Sequence[QuarantineRow] = ()) -> None:
        """Store the evaluations that wake-ups name, with retries while Redis or Postgres is unavailable."""
        backoff: Backoff | None = None
        while True:
            try:
                await self.quarantine(rejected)
                await self._coalescer.submit(evaluation_ids)
            except (LogUnavailable, DatabaseUnavailable) as error:
                self._log_outage(error)
                backoff = backoff or Backoff(longest=2.0)
                await asyncio.sleep(backoff.next())
            else:
                self._note_recovery()
                return

    async def store(self, evaluation_ids: Sequence[str]) -> None:
        """Store all there is of these evaluations, or raise what is unavailable."""
        waiting = list(dict.fromkeys(evaluation_ids))
        if len(waiting) > self._slice_size():
            waiting = await self._closing_first(waiting)
        while waiting:
            size = self._slice_size()
            lost = await self._pass(waiting[:size])
            # An evaluation that lost the compare-and-set is read again before its wake-up is acknowledged.
            waiting = [*waiting[size:], *sorted(lost)]

    async def quarantine(self, rejected: Sequence[QuarantineRow]) -> int:
        """Keep entries that are no events; returns how many of them were new."""
        newly = await self._tables.quarantine(rejected) if rejected else 0
        self._count_quarantined(newly)
        return newly

    async def overlooked(self, evaluation_ids: Sequence[str]) -> list[str]:
        """Return the evaluations without a row, and those that ended without a mark on their stream."""
        rows = await self._tables.rows(evaluation_ids) if evaluation_ids else {}
        ended = [key for key, row in rows.items() if row.cursor.phase in ENDED]
        marks = dict(zip(ended, await self._log.committed(ended), strict=True)) if ended else {}
        return [key for key in evaluation_ids if key not in rows or _is_unmarked(rows[key], marks.get(key))]

    async def sweep(self, *, unchanged_for: float, page: int) -> int:
        """Store again every evaluation that has not ended nor changed for so many seconds."""
        # A sweep that was interrupted may have ended evaluations without marking their streams: no later
        # sweep would read them again. (Those of a worker that was killed are found by the scan.)
        await self._sweep_page(self._interrupted)
        after, count = "", 0
        while ids := await self._tables.open_evaluations(
            after=after, unchanged_for=unchanged_for, limit=page
        ):
            await self._sweep_page(ids)
            after, count = ids[-1], count + len(ids)
        return count

    async def _sweep_page(self, evaluation_ids: Sequence[str]) -> None:
        self._interrupted = list(evaluation_ids)
        await self.store(evaluation_ids)
        self._interrupted = []

    def _slice_size(self) -> int:
        return max(8, min(MAX_SLICE, int(SLICE_BYTES / self._mean_bytes)))

    async def _closing_first(self, evaluation_ids: list[str]) -> list[str]:
        """Under lag, store first the evaluations that have ended."""
        closing = await self._log.closing(evaluation_ids)
        ended = [key for key, closed in zip(evaluation_ids, closing, strict=True) if closed]
        others = [key for key, closed in zip(evaluation_ids, closing, strict=True) if not closed]
        return ended + others

    async def _pass(self, evaluation_ids: Sequence[str]) -> set[str]:
        begun, now_ms = self._clock(), await self._log.now_ms()
        self.metrics.synchronize(now_ms)
        streams = await self._log.read(evaluation_ids, limit=MAX_ENTRIES + 1)
        self._mean_bytes = _mean_bytes(streams)
        rows = await self._tables.rows(evaluation_ids)
        diffs = [
            self._diff(key, raw, rows.get(key)) for key, raw in zip(evaluation_ids, streams, strict=True)
        ]
        resolutions = await self._resolve(diffs, now_ms)
        resolved = self._clock()
        committed = await self._commit(resolutions)
        committed_at, took = utc_now(), timedelta(seconds=self._clock() - resolved)
        self._count(resolutions, committed)
        self._count_gaps(resolutions, now_ms)
        await self._log.settle(_marks(resolutions, committed.lost))
        self.metrics.dependencies.reached(REDIS, POSTGRES)
        telemetry.PASS_MS.record((self._clock() - begun) * 1000)
        ended = ended_evaluations(streams, resolutions, committed.lost)
        telemetry.trace_endings(ended, start=committed_at - took, end=committed_at)
        await self._count_endings(ended)
        return committed.lost

    def _count(self, resolutions: Sequence[Resolution], committed: CommitResult) -> None:
        counts = PassCounts()
        counts.count(resolutions, committed.lost)
        self.counts.add(counts)
        telemetry.count(counts, committed.progress)
        self._count_quarantined(committed.newly_quarantined)

    def _count_quarantined(self, newly: int) -> None:
        self.counts.quarantined += newly
        telemetry.QUARANTINED.add(newly)

    def _count_gaps(self, resolutions: Sequence[Resolution], now_ms: int) -> None:
        self.metrics.record_gaps(resolutions)
        self.counts.gaps_open = len(self.metrics.gaps)
        if warned := self._gaps.observe(resolutions, now_ms):
            self.counts.gaps_warned += warned
            telemetry.GAPS_WARNED.add(warned)

    async def _count_endings(self, ended: Sequence[EndedEvaluation]) -> None:
        if ended and telemetry.is_wired():
            modes = await self._modes.of({one.batch_id for one in ended})
            telemetry.count_endings(ended, modes)

    async def _resolve(self, diffs: Sequence[StreamDiff], now_ms: int) -> list[Resolution]:
        stored = await self._stored(diffs)
        new_batches = {diff.batch_id for diff in diffs if diff.row is None and diff.batch_id}
        months = await self._tables.months(sorted(new_batches)) if new_batches else {}
        bridge_until_ms = self._gaps.bridge_until_ms(now_ms)
        return [
            self._resolve_one(diff, months, stored.get(diff.evaluation_id, {}), bridge_until_ms)
            for diff in diffs
        ]

    def _diff(self, key: str, raw: Sequence[RawEntry], row: EvaluationRow | None) -> StreamDiff:
        try:
            return diff_stream(key, raw, row)
        except Exception as error:  # whatever it is, it must not keep the others from being stored
            logger.exception("could not read an evaluation", extra={"evaluation_id": key})
            return StreamDiff(key, row, rejected=_unexpected(raw[-1][0], error))

    def _resolve_one(
        self,
        diff: StreamDiff,
        months: Mapping[str, date],
        stored: Mapping[EventKey, StoredEvent],
        bridge_until_ms: int,
    ) -> Resolution:
        shard = shard_of(diff.evaluation_id, self._log.shards)
        try:
            return resolve(diff, shard=shard, months=months, stored=stored, bridge_until_ms=bridge_until_ms)
        except Exception as error:  # as above
            logger.exception("could not order an evaluation", extra={"evaluation_id": diff.evaluation_id})
            rejected = _unexpected(diff.entries[-1].id if diff.entries else b"0-0", error)
            return Resolution(None, [quarantine_row(diff.evaluation_id, each) for each in rejected])

    async def _stored(self, diffs: Sequence[StreamDiff]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        incomplete = [
            diff.row for diff in diffs if (diff.needs_comparison or diff.needs_totals) and diff.row
        ]
        return await self._tables.stored(incomplete) if incomplete else {}

    async def _commit(self, resolutions: Sequence[Resolution]) -> CommitResult:
        orphans = [each for resolution in resolutions for each in resolution.orphans]
        newly = await self._tables.quarantine(orphans) if orphans else 0
        changes = [r.change for r in resolutions if r.change and not r.change.is_empty]
        committed = await self._commit_all(changes)
        committed.newly_quarantined += newly
        return committed

    async def _commit_all(self, changes: Sequence[Change]) -> CommitResult:
        """Commit together; if the database rejects the data, bisect to the evaluation that holds it."""
        if not changes:
            return CommitResult()
        try:
            return await self._tables.commit(changes)
        except UnstorableData as error:
            if len(changes) == 1:
                return await self._quarantine_change(changes[0], error)
        middle = len(changes) // 2
        first = await self._commit_all(changes[:middle])
        second = await self._commit_all(changes[middle:])
        first.progress += second.progress
        newly = first.newly_quarantined + second.newly_quarantined
        return CommitResult(first.lost | second.lost, newly, first.progress)

    async def _quarantine_change(self, change: Change, error: UnstorableData) -> CommitResult:
        """Keep what the database rejects as bytes, with its reason, so that it delays no other."""
        key = change.evaluation_id
        logger.error("events rejected by the database", extra={"evaluation_id": key, "error": str(error)})
        rejected = [
            quarantine_row(
                key,
                RejectedEntry(row.entry_id.encode(), QuarantineReason.UNSTORABLE, str(error), row.event),
            )
            for row in (*change.events, *change.side_events)
        ]
        change.events, change.side_events = [], []
        change.after = change.before or Cursor()
        return CommitResult(newly_quarantined=await self._tables.quarantine(rejected + change.quarantined))

    def _log_outage(self, error: Exception) -> None:
        if self.outage is None:
            logger.warning("Redis or Postgres is unavailable: retrying", extra={"error": str(error)})
        self.outage = str(error)
        self.metrics.dependencies.missed(REDIS if isinstance(error, LogUnavailable) else POSTGRES)

    def _note_recovery(self) -> None:
        if self.outage is not None:
            logger.info("Redis and Postgres are available again")
        self.outage = None


def _unexpected(entry_id: bytes, error: Exception) -> list[RejectedEntry]:
    return [RejectedEntry(entry_id, QuarantineReason.UNSTORABLE, f"{type(error).__name__}: {error}", b"")]


def _is_unmarked(row: EvaluationRow, mark: EventKey | None) -> bool:
    """Whether a stream's mark is behind its row; None where the row is open or the stream is gone."""
    return mark is not None and mark < (row.cursor.attempt, row.cursor.sequence)


def _mean_bytes(streams: Sequence[Sequence[RawEntry]]) -> float:
    size = sum(len(fields[-1]) for raw in streams for _, fields in raw if fields)
    return max(1.0, size / max(1, len(streams)))


def _marks(resolutions: Sequence[Resolution], lost: set[str]) -> list[CommitMark]:
    return [
        CommitMark(
            change.evaluation_id,
            change.after.attempt,
            change.after.sequence,
            ended=change.after.phase in ENDED,
        )
        for change in (r.change for r in resolutions if r.change)
        if change.evaluation_id not in lost and change.after.attempt > 0
    ]
