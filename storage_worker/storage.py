"""The path of a batch of wake-ups: read, order, check, commit, and only then let go.

    unique ids → one pipelined read of their streams → rows → what is new (sighting.py)
      → one transaction → marks for the writers → and the caller may acknowledge

The rows are read after the streams: an attempt is opened in Postgres before it appears in its stream,
so an event never meets a row older than its own opening. Nothing here keeps an evaluation in memory
between two batches; the stream is the buffer, and every worker sees the same one.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from datetime import date
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
from storage_worker.company import Company
from storage_worker.endings import Ended, ended_of
from storage_worker.gaps import GapBreaker, Patience
from storage_worker.modes import Modes
from storage_worker.picture import POSTGRES, REDIS, Picture
from storage_worker.sighting import MAX_ENTRIES, Resolution, Sighting, resolve, sight
from storage_worker.tally import Tally
from storage_worker.woken import Woken

logger = logging.getLogger(__name__)

MAX_SLICE = 2_000
"""Evaluations in one transaction."""
SLICE_BYTES = 32 * 1024 * 1024
"""What the streams of one slice should come to, going by those of the slice before."""
REMEMBERED_WARNINGS = 10_000


class Storage:
    """Brings evaluations' streams into the tables."""

    def __init__(  # noqa: PLR0913 - three ports, and how patient to be
        self,
        log: LogReader,
        tables: ProjectionStore,
        patience: Patience,
        *,
        breaker: GapBreaker | None = None,
        clock: Callable[[], float] = monotonic,
        modes: Modes | None = None,
    ) -> None:
        self.tally = Tally()
        self.picture = Picture(clock, lambda: self._patience_now().is_none)
        self.outage: str | None = None
        self._log = log
        self._tables = tables
        self._patience = patience
        self._breaker = breaker or GapBreaker()
        self._clock = clock
        self._modes = modes or Modes()
        self._mean_bytes = 4_096.0
        self._warned: OrderedDict[tuple[str, int, int], None] = OrderedDict()
        self._unswept: list[str] = []
        self._company = Company(self.store)

    @property
    def in_a_hurry(self) -> bool:
        """Whether gaps are bridged without waiting because they have become the rule."""
        return self._breaker.is_open(self._clock())

    async def wake(self, woken: Woken) -> None:
        """Do what wake-ups ask for, however long Redis or Postgres may be away."""
        backoff = Backoff(longest=2.0)
        while True:
            try:
                await self.quarantine(woken.refused)
                await self._company.join(woken.evaluation_ids)
            except (LogUnavailable, DatabaseUnavailable) as error:
                self._note_outage(error)
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
            # Whoever lost a race is read again before its wake-up is acknowledged.
            waiting = [*waiting[size:], *sorted(lost)]

    async def quarantine(self, refused: Sequence[QuarantineRow]) -> int:
        """Keep what is no event; returns how much of it was new."""
        newly = await self._tables.quarantine(refused) if refused else 0
        self._count_quarantined(newly)
        return newly

    async def without_row(self, evaluation_ids: Sequence[str]) -> list[str]:
        """Name those of some evaluations that the tables do not have."""
        rows = await self._tables.rows(evaluation_ids) if evaluation_ids else {}
        return [key for key in evaluation_ids if key not in rows]

    async def sweep(self, *, unchanged_for: float, page: int) -> int:
        """Look again at every evaluation that has not ended nor moved for so many seconds."""
        # A sweep that broke off may have ended what it looked at: no later one would find that again,
        # and its stream would never be let go.
        await self._sweep_over(self._unswept)
        after, looked = "", 0
        while ids := await self._tables.open_evaluations(
            after=after, unchanged_for=unchanged_for, limit=page
        ):
            await self._sweep_over(ids)
            after, looked = ids[-1], looked + len(ids)
        return looked

    async def _sweep_over(self, evaluation_ids: Sequence[str]) -> None:
        self._unswept = list(evaluation_ids)
        await self.store(evaluation_ids)
        self._unswept = []

    def _slice_size(self) -> int:
        return max(8, min(MAX_SLICE, int(SLICE_BYTES / self._mean_bytes)))

    async def _closing_first(self, evaluation_ids: list[str]) -> list[str]:
        """Under lag, let those go first that have come to their end."""
        closing = await self._log.closing(evaluation_ids)
        ended = [key for key, closed in zip(evaluation_ids, closing, strict=True) if closed]
        others = [key for key, closed in zip(evaluation_ids, closing, strict=True) if not closed]
        return ended + others

    async def _pass(self, evaluation_ids: Sequence[str]) -> set[str]:
        begun, now_ms = self._clock(), await self._log.now_ms()
        self.picture.tell_time(now_ms)
        streams = await self._log.read(evaluation_ids, limit=MAX_ENTRIES + 1)
        self._mean_bytes = _mean_bytes(streams)
        rows = await self._tables.rows(evaluation_ids)
        sightings = [
            self._sight(key, raw, rows.get(key)) for key, raw in zip(evaluation_ids, streams, strict=True)
        ]
        resolutions = await self._resolve(sightings, now_ms)
        commits_at = utc_now()
        committed = await self._commit(resolutions)
        committed_at = utc_now()
        self._count(resolutions, committed)
        self._look_at_gaps(resolutions, now_ms)
        await self._log.settle(_marks(resolutions, committed.lost))
        self.picture.reached(REDIS, POSTGRES)
        telemetry.PASS_MS.record((self._clock() - begun) * 1000)
        ended = ended_of(streams, resolutions, committed.lost)
        telemetry.trace_endings(ended, start=commits_at, end=committed_at)
        await self._tell_of_endings(ended)
        return committed.lost

    def _count(self, resolutions: Sequence[Resolution], committed: CommitResult) -> None:
        counted = Tally()
        counted.count(resolutions, committed.lost)
        self.tally.add(counted)
        telemetry.count(counted, committed.progress)
        self._count_quarantined(committed.newly_quarantined)

    def _count_quarantined(self, newly: int) -> None:
        self.tally.quarantined += newly
        telemetry.QUARANTINED.add(newly)

    async def _tell_of_endings(self, ended: Sequence[Ended]) -> None:
        if ended and telemetry.is_wired():
            modes = await self._modes.of({one.batch_id for one in ended})
            telemetry.count_endings(ended, modes)

    async def _resolve(self, sightings: Sequence[Sighting], now_ms: int) -> list[Resolution]:
        stored = await self._stored(sightings)
        new_batches = {seen.batch_id for seen in sightings if seen.row is None and seen.batch_id}
        months = await self._tables.months(sorted(new_batches)) if new_batches else {}
        bridge_until_ms = self._patience_now().bridge_until_ms(now_ms)
        return [
            self._resolve_one(
                seen, months.get(seen.batch_id or ""), stored.get(seen.evaluation_id, {}), bridge_until_ms
            )
            for seen in sightings
        ]

    def _sight(self, key: str, raw: Sequence[RawEntry], row: EvaluationRow | None) -> Sighting:
        try:
            return sight(key, raw, row)
        except Exception as error:  # whatever it is, it must not keep the others from being stored
            logger.exception("could not read an evaluation", extra={"evaluation_id": key})
            return Sighting(key, row, refused=_puzzling(raw[-1][0], error))

    def _resolve_one(
        self,
        seen: Sighting,
        month: date | None,
        stored: Mapping[EventKey, StoredEvent],
        bridge_until_ms: int,
    ) -> Resolution:
        shard = shard_of(seen.evaluation_id, self._log.shards)
        try:
            return resolve(seen, shard=shard, month=month, stored=stored, bridge_until_ms=bridge_until_ms)
        except Exception as error:  # as above
            logger.exception("could not order an evaluation", extra={"evaluation_id": seen.evaluation_id})
            refused = _puzzling(seen.entries[-1].id if seen.entries else b"0-0", error)
            return Resolution(None, [quarantine_row(seen.evaluation_id, bad) for bad in refused])

    async def _stored(self, sightings: Sequence[Sighting]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        doubtful = [seen.row for seen in sightings if (seen.must_compare or seen.needs_totals) and seen.row]
        return await self._tables.stored(doubtful) if doubtful else {}

    def _patience_now(self) -> Patience:
        return self._patience.hurried() if self.in_a_hurry else self._patience

    async def _commit(self, resolutions: Sequence[Resolution]) -> CommitResult:
        orphans = [bad for resolution in resolutions for bad in resolution.orphans]
        newly = await self._tables.quarantine(orphans) if orphans else 0
        changes = [r.change for r in resolutions if r.change and not r.change.is_empty]
        committed = await self._commit_all(changes)
        committed.newly_quarantined += newly
        return committed

    async def _commit_all(self, changes: Sequence[Change]) -> CommitResult:
        """Commit together; if the database refuses the data, find out whose it was."""
        if not changes:
            return CommitResult()
        try:
            return await self._tables.commit(changes)
        except UnstorableData as error:
            if len(changes) == 1:
                return await self._give_up(changes[0], error)
        middle = len(changes) // 2
        first = await self._commit_all(changes[:middle])
        second = await self._commit_all(changes[middle:])
        first.progress += second.progress
        newly = first.newly_quarantined + second.newly_quarantined
        return CommitResult(first.lost | second.lost, newly, first.progress)

    async def _give_up(self, change: Change, error: UnstorableData) -> CommitResult:
        """Keep what the database refuses as bytes, with its reason, so that it stops only itself."""
        key = change.evaluation_id
        logger.error("events refused by the database", extra={"evaluation_id": key, "error": str(error)})
        refused = [
            quarantine_row(
                key,
                RejectedEntry(row.entry_id.encode(), QuarantineReason.UNSTORABLE, str(error), row.event),
            )
            for row in (*change.events, *change.side_events)
        ]
        change.events, change.side_events = [], []
        change.after = change.before or Cursor()
        return CommitResult(newly_quarantined=await self._tables.quarantine(refused + change.quarantined))

    def _look_at_gaps(self, resolutions: Sequence[Resolution], now_ms: int) -> None:
        gaps = [r for r in resolutions if r.gap]
        self.picture.look_at_gaps(resolutions)
        self.tally.gaps_open = len(self.picture.gaps)
        old = [r for r in gaps if r.gap and self._patience.is_worth_a_warning(r.gap.since_ms, now_ms)]
        for resolution in old:
            self._warn_once(resolution)
        # Only gaps that not waiting would mend: one without a closing event can't be bridged anyhow.
        bridgeable = sum(1 for r in old if r.gap and r.gap.closing)
        if self._breaker.observe(self._clock(), looked=len(resolutions), gapped=bridgeable):
            logger.error("gaps have become the rule: no longer waiting for order")

    def _warn_once(self, resolution: Resolution) -> None:
        gap, change = resolution.gap, resolution.change
        if gap is None or change is None:
            return
        key = (change.evaluation_id, gap.attempt, gap.missing[0].start if gap.missing else 0)
        if key in self._warned:
            return
        self._warned[key] = None
        if len(self._warned) > REMEMBERED_WARNINGS:
            self._warned.popitem(last=False)
        self.tally.gaps_warned += 1
        telemetry.GAPS_WARNED.add(1)
        missing = [[hole.start, hole.stop - 1] for hole in gap.missing]
        extra = {
            "evaluation_id": key[0],
            "batch_id": change.batch_id,
            "attempt": gap.attempt,
            "missing": missing,
        }
        logger.warning("events are missing", extra=extra)

    def _note_outage(self, error: Exception) -> None:
        if self.outage is None:
            logger.warning("waiting for the servers", extra={"error": str(error)})
        self.outage = str(error)
        self.picture.missed(REDIS if isinstance(error, LogUnavailable) else POSTGRES)

    def _note_recovery(self) -> None:
        if self.outage is not None:
            logger.info("the servers are back")
        self.outage = None


def _puzzling(entry_id: bytes, error: Exception) -> list[RejectedEntry]:
    return [RejectedEntry(entry_id, QuarantineReason.UNSTORABLE, f"{type(error).__name__}: {error}", b"")]


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
