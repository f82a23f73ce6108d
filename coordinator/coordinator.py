"""The control plane: round after round, it does for every batch what is to be done next.

All it must not forget is in the ledger, so any number of coordinators may live, die and overlap: a step
that was half done is done again, and whoever comes second finds it done.
"""

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from time import monotonic

from coordinator import decisions
from coordinator.attempts import Ending, Opener
from coordinator.epochs import Epochs
from coordinator.groups import contexts
from coordinator.looking import look
from coordinator.publishing import Publisher
from coordinator.reconcile import Next, reconcile
from coordinator.settings import CoordinatorSettings
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.log import EventLog, LogUnavailable
from projections.ledger import Batch, Decide, Ledger, Opened, Standing, Unpublished
from projections.tables import TablesUnavailable
from taskqueue.board import BatchBoard, BatchState, Listing
from taskqueue.presence import Attendance
from taskqueue.spec import BatchSpec, unpack
from taskqueue.tasks import QueueUnavailable, Task, TaskQueue

logger = logging.getLogger(__name__)

AWAY = (LogUnavailable, TablesUnavailable, QueueUnavailable)
"""What waiting mends."""
STREAM_LIMIT = 1_000
STATES = {"running": BatchState.RUNNING, "paused": BatchState.PAUSED}
REASONS = {Next.RETRY: p.OpeningReason.RETRY, Next.LOST: p.OpeningReason.LOST}


class Coordinator:
    """The only one who opens attempts."""

    def __init__(  # noqa: PLR0913 - five ports, two clocks
        self,
        log: EventLog,
        ledger: Ledger,
        queue: TaskQueue,
        board: BatchBoard,
        attendance: Attendance,
        *,
        settings: CoordinatorSettings | None = None,
        now: Callable[[], datetime] = utc_now,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.settings = settings or CoordinatorSettings()
        self._log = log
        self._ledger = ledger
        self._queue = queue
        self._board = board
        self._attendance = attendance
        self._publisher = Publisher(log, queue)
        self._epochs = Epochs(log, grace=self.settings.grace, clock=clock)
        self._now = now
        self._clock = clock
        self._reconciled: dict[str, float] = {}
        self._made_up_for: dict[str, list[str]] = {}
        """Epochs whose beginning a batch has got over: all it had in flight before was looked at."""
        self._specs: dict[str, BatchSpec] = {}

    async def go_round(self) -> int:
        """Do for each batch what is to be done next; returns how many are not over."""
        await self._epochs.look()
        batches = await self._ledger.unfinished()
        await self.put_up(batches)
        for batch in batches:
            try:
                await self.tend(batch)
            except AWAY:
                raise
            except Exception:  # one bad batch stops only itself
                logger.exception("could not tend a batch", extra={"batch_id": batch.batch_id})
        await self._publish_endings()
        self._forget_all_but(batches)
        return len(batches)

    async def tend(self, batch: Batch) -> None:
        """Do for one batch what is to be done next."""
        match batch.state:
            case "cancelled":
                await self._end_open(batch, p.Cancelled(by="operator", reason=batch.reason))
            case "expired":
                await self._end_open(batch, p.TimedOut(limit="batch", seconds=0.0))
            case "running" if batch.deadline and batch.deadline <= self._now():
                await self._expire(batch)
            case "running":
                await self._drive(batch)
            case _:
                pass  # paused: what is in hand comes to its end by itself
        if batch.ended >= batch.total:
            await self._finish(batch)

    async def _drive(self, batch: Batch) -> None:
        await self._publish_window(batch)
        await self._advance_groups(batch)
        retries = await self._ledger.due_retries(batch, now=self._now(), limit=self.settings.chunk)
        await self._look_after(batch, retries)
        if self._is_time_to_reconcile(batch.batch_id):
            await self._reconcile(batch)

    async def _expire(self, batch: Batch) -> None:
        logger.warning("a batch is out of time", extra={"batch_id": batch.batch_id})
        await self._ledger.ask(batch.batch_id, "expired", by="coordinator", reason="out of time")

    async def _finish(self, batch: Batch) -> None:
        if await self._ledger.finish(batch.batch_id):
            await self._board.take_down(batch.batch_id)
            await self._queue.forget(batch.batch_id)
            logger.info("a batch is over", extra={"batch_id": batch.batch_id, "total": batch.total})

    # -- what executors may see

    async def put_up(self, batches: Sequence[Batch]) -> None:
        """Keep the board as the ledger has it: Redis may have lost it, or never have been told."""
        up = {listing.batch_id: listing for listing in await self._board.listings()}
        for batch in batches:
            listing = listing_of(batch)
            if up.get(batch.batch_id) != listing:
                await self._board.announce(listing, batch.spec)

    async def _publish_window(self, batch: Batch) -> None:
        """Tell executors of more evaluations, as long as few enough are under way."""
        settings = self.settings
        room = settings.window - batch.in_flight
        if room < min(settings.chunk, settings.window) and batch.in_flight > 0:
            return
        openings, last_id = await self._ledger.next_window(batch, limit=min(room, settings.window))
        if last_id == batch.published_to:
            return
        epochs = await self._epochs.look()
        if await self._ledger.open_window(batch, last_id=last_id, size=len(openings), epochs=epochs):
            await self._publish(batch.batch_id, openings)

    async def _publish(self, batch_id: str, openings: Iterable[Unpublished]) -> None:
        told = ((one.events, self._epochs.of(one.evaluation_id)) for one in openings)
        await self._publisher.publish(batch_id, told)

    async def _publish_endings(self) -> None:
        """Fence off whoever still works on what has ended in Postgres, in the epoch of now."""
        while endings := await self._ledger.unpublished_endings(limit=self.settings.chunk):
            await self._publisher.publish("", ((one.events, "") for one in endings))
            await self._ledger.mark_published([one.evaluation_id for one in endings])

    async def _advance_groups(self, batch: Batch) -> None:
        """Tell executors of those in serial groups whose turn has come."""
        waiting = await self._ledger.due_links(batch.batch_id, limit=self.settings.chunk)
        if not waiting:
            return
        links = {one.evaluation_id: one.link for one in waiting}
        left = await contexts(self._ledger, self._spec(batch), links)
        ready = {key: context.packed() for key, context in left.items() if context.missing is None}
        hopeless = {key: context.missing for key, context in left.items() if context.missing}
        await self._board.put_contexts(batch.batch_id, ready)
        released = await self._ledger.release(list(ready), await self._epochs.look())
        await self._publish(batch.batch_id, released)
        await self._open(batch, sorted(hopeless), decisions.give_up(self._opener, hopeless))

    # -- what has not moved

    def _is_time_to_reconcile(self, batch_id: str) -> bool:
        now = self._clock()
        if now - self._reconciled.get(batch_id, -1e9) < self.settings.reconcile_interval.total_seconds():
            return False
        self._reconciled[batch_id] = now
        return True

    async def _reconcile(self, batch: Batch) -> None:
        """Look at every evaluation that has not moved for a while."""
        [counts] = await self._queue.counts([batch.batch_id])
        epochs, settled = await self._epochs.look(), self._epochs.all_settled
        live = [one.incarnation for one in await self._attendance.present()]
        hung_after = self._allowed(batch) + self.settings.hung_grace
        after = ""
        while page := await self._ledger.unmoved(
            batch,
            after=after,
            unchanged_for=self.settings.unchanged_for,
            hung_after=hung_after,
            live=live,
            # A task that is still waiting will find its executor, unless Redis has lost what it was for.
            queued=counts.is_drained or self._made_up_for.get(batch.batch_id) != epochs,
            limit=self.settings.chunk,
        ):
            await self._look_after(batch, page, is_drained=counts.is_drained)
            after = page[-1].row.evaluation_id
        if settled:
            self._made_up_for[batch.batch_id] = epochs

    def _allowed(self, batch: Batch) -> timedelta:
        """How long an attempt may take: the target's time-out, and each evaluator's."""
        spec = self._spec(batch)
        return timedelta(seconds=spec.timeout + sum(evaluator.timeout for evaluator in spec.evaluators))

    async def _look_after(
        self, batch: Batch, standings: Sequence[Standing], *, is_drained: bool = False
    ) -> None:
        if not standings:
            return
        owners = {one.row.owner for one in standings if one.row.owner}
        streams = await self._log.read([one.row.evaluation_id for one in standings], limit=STREAM_LIMIT)
        seen = [
            look(standing, stream, epoch=self._epochs.of(standing.row.evaluation_id))
            for standing, stream in zip(standings, streams, strict=True)
        ]
        live = await self._attendance.live(owners | {one.claimed_by for one in seen if one.claimed_by})
        now_ms = await self._log.now_ms()
        deadline = self._allowed(batch) + self.settings.hung_grace
        decided: dict[Next, list[Standing]] = {}
        for standing, one in zip(standings, seen, strict=True):
            is_settled = self._epochs.is_settled(standing.row.evaluation_id)
            sight = one.sight(
                live, now_ms=now_ms, allowed=deadline, is_settled=is_settled, is_drained=is_drained
            )
            decided.setdefault(reconcile(sight), []).append(standing)
        await self._act(batch, decided)

    async def _act(self, batch: Batch, decided: dict[Next, list[Standing]]) -> None:
        for what, standings in decided.items():
            ids = [standing.row.evaluation_id for standing in standings]
            if what is Next.WAIT:
                continue
            logger.info(
                "evaluations did not move",
                extra={"batch_id": batch.batch_id, "next": what, "count": len(ids)},
            )
            if what is Next.PUBLISH:
                await self._publish(batch.batch_id, await self._ledger.openings(ids))
            elif what is Next.ENQUEUE:
                tasks = [Task(one.row.evaluation_id, one.row.cursor.attempt) for one in standings]
                await self._queue.enqueue_batch(batch.batch_id, tasks)
            else:
                expected = {one.row.evaluation_id: one.row.cursor.attempt for one in standings}
                retries = self._spec(batch).retries
                decide = decisions.try_again(self._opener, expected, reason=REASONS[what], retries=retries)
                await self._open(batch, ids, decide)

    # -- opening attempts

    def _opener(self, evaluation_id: str) -> Opener:
        return Opener(self.settings.name, self._now(), self._epochs.of(evaluation_id))

    async def _open(self, batch: Batch, evaluation_ids: Sequence[str], decide: Decide) -> list[Opened]:
        """Open attempts in Postgres, then tell executors."""
        if not evaluation_ids:
            return []
        opened = await self._ledger.open_attempts(evaluation_ids, decide)
        await self._leave_contexts(batch, opened)
        await self._publisher.publish(
            batch.batch_id,
            (
                (one.events, one.epoch if _is_queued(one) else "")
                for one in opened
                if _concerns_anybody(one)
            ),
        )
        await self._ledger.mark_published([one.evaluation_id for one in opened if not _is_queued(one)])
        return opened

    async def _leave_contexts(self, batch: Batch, opened: Sequence[Opened]) -> None:
        """Leave again what earlier evaluations came to: Redis may have lost it since."""
        in_group = [one.evaluation_id for one in opened if _is_in_group(one)]
        if in_group:
            left = await contexts(self._ledger, self._spec(batch), await self._ledger.links(in_group))
            packed = {key: context.packed() for key, context in left.items()}
            await self._board.put_contexts(batch.batch_id, packed)

    async def _end_open(self, batch: Batch, ending: Ending) -> int:
        """End all that has not ended, page by page."""
        after, ended = "", 0
        while ids := await self._ledger.open_ids(batch.batch_id, after=after, limit=self.settings.chunk):
            ended += len(await self._open(batch, ids, decisions.end(self._opener, ending)))
            after = ids[-1]
        return ended

    async def reopen(self, batch: Batch, evaluation_ids: Sequence[str]) -> int:
        """Try settled evaluations again, because an operator asks; returns how many."""
        await self._epochs.look()
        await self.put_up([batch])
        decide = decisions.reopen(self._opener, retries=self._spec(batch).retries)
        return len(await self._open(batch, evaluation_ids, decide))

    def _spec(self, batch: Batch) -> BatchSpec:
        if batch.batch_id not in self._specs:
            self._specs[batch.batch_id] = unpack(batch.spec)
        return self._specs[batch.batch_id]

    def _forget_all_but(self, batches: Sequence[Batch]) -> None:
        known = {batch.batch_id for batch in batches}
        for memory in (self._reconciled, self._made_up_for, self._specs):
            for gone in memory.keys() - known:
                memory.pop(gone, None)


def listing_of(batch: Batch) -> Listing:
    """Write a batch out for the board."""
    state = STATES.get(batch.state, BatchState.STOPPED)
    return Listing(batch.batch_id, state, batch.priority, batch.project)


def _is_queued(opened: Opened) -> bool:
    return len(opened.events) == 1 and isinstance(opened.events[0][0].data, p.Queued)


def _is_in_group(opened: Opened) -> bool:
    opening = opened.events[0][0].data
    return _is_queued(opened) and isinstance(opening, p.Queued) and opening.in_group


def _concerns_anybody(opened: Opened) -> bool:
    """Whether executors must hear of it: of an ending only if they had heard of the evaluation."""
    return _is_queued(opened) or opened.was_published
