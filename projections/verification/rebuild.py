"""Rebuild of a batch's tables from its log in a shadow schema, and the swap of the rows that differ.

    build   folds one snapshot of the database, page by page, into the shadow schema, without locks
    swap    in one transaction: blocks writers, folds what was written since, and replaces every row that
            differs; readers see all changes or none

Rows are swapped, not tables: other batches use the same tables, and views, grants and cached plans are
bound to them. A batch whose log breaks a rule is not changed.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from projections.database.connection import Connection, one_snapshot
from projections.folds.change import QuarantineRow
from projections.folds.plain_fold import PlainResult
from projections.folds.progress import counters_of
from projections.folds.refold import RefoldResult
from projections.folds.scorecard import exact
from projections.sql import query
from projections.store.postgres import insert_quarantined
from projections.verification.page_workers import IN_UTC, PageJob, over_pages
from projections.verification.pages import PAGE, BatchExtent, read_batch, read_page
from projections.verification.plain_page import clear_plain
from projections.verification.verify import expected_row, is_of, lacks_its_log, retrace_in, wrong_month

LOCK = "scoreline.rebuild"
ROW_TYPES = (
    *("text", "text", "date", "int2", "int4", "int4", "text", "text", "bool", "timestamptz"),
    *("text", "int4"),
    *("int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "int8", "numeric", "int8", "numeric"),
)
CARD_TYPES = (
    *("text", "text", "int4", "text", "text", "float8", "bytea", "int8", "numeric", "float8", "int8"),
    *("bytea", "bool", "timestamptz"),
)
CLEARED_TYPES = ("text", "int2", "int4", "bool", "bool", "numeric", "int8", "numeric")
"""Wire types of the COPYs; json travels as the plain bytes of its text."""


class RebuildInProgress(Exception):  # noqa: N818 - a state of the world
    """Another rebuild holds the advisory lock."""

    def __init__(self) -> None:
        super().__init__("Another rebuild is under way; there can be only one at a time.")


class BrokenLog(Exception):  # noqa: N818 - names what is wrong
    """The log itself breaks a rule, so nothing can be rebuilt from it."""

    def __init__(self, evaluation_id: str, rule: str) -> None:
        super().__init__(
            f"The log of {evaluation_id} breaks a rule, and nothing was changed: {rule}. "
            "Events are never updated by Scoreline: restore them from a backup."
        )
        self.evaluation_id = evaluation_id
        self.rule = rule


@dataclass(slots=True)
class RebuildResult:
    """The result of a rebuild: folded evaluations and events, and corrected rows."""

    batch_id: str
    evaluations: int = 0
    events: int = 0
    folded_again: int = 0
    """Evaluations that got events before the swap."""
    evaluation_rows: int = 0
    scorecard_rows: int = 0
    counter_rows: int = 0
    quarantine_rows: int = 0


async def rebuild(
    conn: Connection,
    batch_id: str,
    *,
    shards: int,
    processes: int = 1,
    on_page: Callable[[int], None] = lambda _: None,
) -> RebuildResult:
    """Rebuild a batch's tables; `on_page` is called with the number of folded evaluations."""
    async with _exclusive(conn):
        batch = await _batch(conn, batch_id)
        if wrong := wrong_month(batch):
            raise BrokenLog(f"batch {batch_id}", "its month is {}, and should be {}".format(*wrong))
        builder = _Builder(conn, batch, shards)
        await _run_script(conn, "create_rebuild")
        try:
            await builder.build(on_page, processes=processes)
            await builder.swap()
        finally:
            if not conn.closed:
                await _run_script(conn, "drop_rebuild")
        return builder.rebuilt


@asynccontextmanager
async def _exclusive(conn: Connection) -> AsyncIterator[None]:
    """Hold the advisory lock of rebuilds; it ends with the connection, so a crash releases it."""
    async with conn.transaction():
        locked = await conn.execute("SELECT pg_try_advisory_lock(hashtext(%s))", [LOCK])
        if await locked.fetchone() != (True,):
            raise RebuildInProgress
    try:
        yield
    finally:
        if not conn.closed:
            async with conn.transaction():
                await conn.execute("SELECT pg_advisory_unlock(hashtext(%s))", [LOCK])


async def _batch(conn: Connection, batch_id: str) -> BatchExtent:
    async with conn.transaction():
        return await read_batch(conn, batch_id)


async def _run_script(conn: Connection, name: str) -> None:
    async with conn.transaction():
        await conn.execute(query(name))


class _Builder:
    """One rebuild of one batch."""

    def __init__(self, conn: Connection, batch: BatchExtent, shards: int) -> None:
        self.rebuilt = RebuildResult(batch.batch_id)
        self._conn = conn
        self._batch = batch
        self._shards = shards
        self._unlisted: dict[str, QuarantineRow] = {}
        self._began = ""
        """The oldest transaction whose writes may be missing from what was compared."""

    async def build(self, on_page: Callable[[int], None], *, processes: int) -> None:
        """Fold one snapshot of the database into the shadow."""
        async with one_snapshot(self._conn):
            self._began = await self._oldest_transaction()
            pages = over_pages(self._conn, self._batch, fold_page, shards=self._shards, processes=processes)
            async with aclosing(pages):
                async for job, folded in pages:
                    self._take(folded)
                    on_page(len(job.ids))

    async def swap(self) -> None:
        """Block writers, catch up with them, and replace the rows that differ."""
        rebuilt, batch_id = self.rebuilt, self._batch.batch_id
        async with self._conn.transaction():
            await self._catch_up()  # so that little is left to do while writers are blocked
        async with self._conn.transaction():
            await self._conn.execute(query("lock_rebuilt"))
            await self._catch_up()
            rebuilt.evaluations, rebuilt.events = await self._folded()
            rebuilt.evaluation_rows = await self._changed("swap_evaluations")
            rebuilt.scorecard_rows = await self._changed("swap_scorecards_away", batch_id)
            rebuilt.scorecard_rows += await self._changed("swap_scorecards")
            rebuilt.counter_rows = await self._changed("swap_progress_away", batch_id)
            rebuilt.counter_rows += await self._changed("swap_progress", batch_id)
            rebuilt.quarantine_rows = await insert_quarantined(self._conn, list(self._unlisted.values()))

    async def _catch_up(self) -> None:
        values = {"batch": self._batch.batch_id, "began": self._began}
        self._began = await self._oldest_transaction()
        rows = await self._conn.execute(query("rebuild_outdated"), values)
        outdated = [key for (key,) in await rows.fetchall()]
        self.rebuilt.folded_again += len(outdated)
        for first in range(0, len(outdated), PAGE):
            ids = outdated[first : first + PAGE]
            await self._conn.execute(query("delete_rebuilt"), {"ids": ids})
            self._take(await fold_page(self._conn, PageJob(self._batch, self._shards, ids)))

    def _take(self, folded: "FoldedPage") -> None:
        if folded.broken:
            raise BrokenLog(*folded.broken)
        self._unlisted |= {bad.id: bad for bad in folded.unlisted}

    async def _oldest_transaction(self) -> str:
        [(transaction,)] = await (await self._conn.execute(query("rebuild_began"))).fetchall()
        return str(transaction)

    async def _folded(self) -> tuple[int, int]:
        [(evaluations, events)] = await (await self._conn.execute(query("rebuild_counted"))).fetchall()
        return evaluations, events

    async def _changed(self, name: str, *values: object) -> int:
        return (await self._conn.execute(query(name), values)).rowcount


class FoldedPage(NamedTuple):
    """The result of one page, besides the rows in the shadow."""

    unlisted: list[QuarantineRow]
    """Rejected entries that are missing from the quarantine, to be inserted again."""
    broken: tuple[str, str] | None = None
    """The evaluation whose log breaks a rule, and the rule; nothing of the page was written."""


async def fold_page(conn: Connection, job: PageJob) -> FoldedPage:
    """Fold some evaluations and write them into the shadow: briefly those whose rows need no correction."""
    await conn.execute(IN_UTC)
    plain = await clear_plain(conn, job.batch, job.ids, shards=job.shards)
    await _copy(
        conn,
        "copy_cleared",
        CLEARED_TYPES,
        [_cleared_row(key, *each) for key, each in plain.cleared.items()],
    )
    others = [key for key in job.ids if key not in plain.cleared]
    return await _fold_others(conn, job, others) if others else FoldedPage([])


async def _fold_others(conn: Connection, job: PageJob, ids: Sequence[str]) -> FoldedPage:
    page = await read_page(conn, job.batch.month, ids)
    for key in page.ids:
        if lost := lacks_its_log(page, key):
            return FoldedPage([], (key, lost))
    folded = {key: retrace_in(page, key, job) for key in page.ids if is_of(job.batch, page, key)}
    for key, retraced in folded.items():
        if retraced.broken:
            return FoldedPage([], (key, retraced.broken[0]))
    rows = [_shadow_row(retraced, len(page.events.get(key, ()))) for key, retraced in folded.items()]
    await _copy(conn, "copy_rebuilt_evaluations", ROW_TYPES, rows)
    cards = [retraced.change.scorecard for retraced in folded.values()]
    await _copy(conn, "copy_rebuilt_scorecards", CARD_TYPES, [card for card in cards if card])
    refused = (bad for retraced in folded.values() for bad in retraced.change.quarantined)
    return FoldedPage([bad for bad in refused if bad.id not in page.quarantined])


async def _copy(conn: Connection, name: str, types: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> None:
    async with conn.cursor() as cursor, cursor.copy(query(name)) as copy:
        copy.set_types(types)
        for row in rows:
            await copy.write_row(row)


def _shadow_row(retraced: RefoldResult, events: int) -> tuple[Any, ...]:
    return (*expected_row(retraced), retraced.change.head, events, *counters_of(retraced.progress))


def _cleared_row(key: str, shard: int, folded: PlainResult) -> tuple[Any, ...]:
    """Lay out what an evaluation adds to the counters."""
    if folded.card is None:
        return (key, shard, folded.events, False, False, None, folded.tokens, folded.cost_usd)
    verdict, score, *_ = folded.card
    exact_score = None if score is None else exact(score)
    return (
        *(key, shard, folded.events, True, verdict == "passed"),
        *(exact_score, folded.tokens, folded.cost_usd),
    )
