"""Keyset pagination over all rows of a batch.

Memory holds one page, however large the batch. Pages read in one REPEATABLE READ transaction are
consistent with each other.
"""

import gc
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NamedTuple

from psycopg.types.multirange import Multirange

from eventlog.events import EventKey
from projections.database.connection import Connection
from projections.database.errors import UnknownBatch
from projections.folds.change import EventRow, QuarantineRow
from projections.folds.progress import Progress
from projections.folds.refold import BridgedGaps
from projections.folds.scorecard import Scorecard
from projections.sql import query

PAGE = 1_000
"""Evaluations of one page."""


class BatchExtent(NamedTuple):
    """The partition and the size of a batch's log."""

    batch_id: str
    month: date
    month_of_acceptance: date
    evaluations: int


class DerivedRow(NamedTuple):
    """The columns of `evaluations` that follow from the log."""

    evaluation_id: str
    batch_id: str
    month: date
    shard: int
    attempt: int
    sequence: int
    state: str
    owner: str | None
    bridged: bool
    ended_at: datetime | None


@dataclass(frozen=True, slots=True)
class Page:
    """Some evaluations and all rows of them."""

    ids: Sequence[str]
    evaluations: dict[str, DerivedRow]
    events: defaultdict[str, list[EventRow]]
    bridged_gaps: defaultdict[str, dict[EventKey, tuple[range, ...]]]
    scorecards: dict[str, Scorecard]
    quarantined: dict[str, QuarantineRow]
    """By the ids of their rows."""

    def bridged_gaps_of(self, evaluation_id: str) -> BridgedGaps:
        """The bridged gaps of an evaluation."""
        return self.bridged_gaps.get(evaluation_id, {})


async def read_batch(conn: Connection, batch_id: str) -> BatchExtent:
    """Read a batch's own row, or raise `UnknownBatch`."""
    row = await (await conn.execute(query("page_batch"), [batch_id])).fetchone()
    if row is None:
        raise UnknownBatch(batch_id)
    return BatchExtent(batch_id, *row)


async def page_ids(conn: Connection, batch: BatchExtent, *, size: int = PAGE) -> AsyncIterator[list[str]]:
    """Return a batch's evaluation ids page by page; last those that name the batch without a row in it."""
    after = ""
    while ids := await _ids(conn, "page_ids", [batch.batch_id, after, size]):
        yield ids
        after = ids[-1]
    strays = await _ids(conn, "page_strays", {"batch": batch.batch_id, "month": batch.month})
    for first in range(0, len(strays), size):
        yield strays[first : first + size]


class Since(NamedTuple):
    """Which evaluations have changed, by Postgres' clock: the start of the transaction that wrote them."""

    at: datetime
    events: bool = True
    """Whether an event that moved no row counts, such as a late one: finding those reads the whole log."""


async def changed_ids(
    conn: Connection, batch: BatchExtent, since: Since, *, size: int = PAGE
) -> AsyncIterator[list[str]]:
    """Return the ids of a batch's evaluations that have changed, page by page."""
    values = {"batch": batch.batch_id, "after": "", "since": since.at, "size": size}
    while ids := await _ids(conn, "changed_ids" if since.events else "moved_ids", values):
        yield ids
        values["after"] = ids[-1]


async def read_page(conn: Connection, month: date, ids: Sequence[str]) -> Page:
    """Read all rows of some evaluations."""
    wanted = [list(ids)]
    events: defaultdict[str, list[EventRow]] = defaultdict(list)
    for row in await _rows(conn, "page_events", [month, *wanted]):
        events[row[1]].append(EventRow(*row))
    bridged_gaps: defaultdict[str, dict[EventKey, tuple[range, ...]]] = defaultdict(dict)
    for key, attempt, closing, missing in await _rows(conn, "page_bridges", wanted):
        bridged_gaps[key][attempt, closing] = ranges(missing)
    return Page(
        ids,
        {row[0]: DerivedRow(*row) for row in await _rows(conn, "page_evaluations", wanted)},
        events,
        bridged_gaps,
        await read_scorecards(conn, ids),
        {row[0]: QuarantineRow(*row) for row in await _rows(conn, "page_quarantine", wanted)},
    )


async def read_scorecards(conn: Connection, ids: Sequence[str]) -> dict[str, Scorecard]:
    """Read the scorecards that some evaluations have."""
    return {row[0]: _scorecard(row) for row in await _rows(conn, "page_scorecards", [list(ids)])}


def ranges(missing: Multirange[int]) -> tuple[range, ...]:
    """Convert the missing sequences of a bridge to ranges."""
    return tuple(range(hole.lower or 0, hole.upper or 0) for hole in missing)


@contextmanager
def rare_garbage_collection() -> Iterator[None]:
    """Raise the threshold of the garbage collector: events hold no reference cycles."""
    before = gc.get_threshold()
    gc.set_threshold(100_000, *before[1:])
    try:
        yield
    finally:
        gc.set_threshold(*before)


async def live_batches(conn: Connection, since: datetime) -> list[str]:
    """Return the batches that have not finished, or finished since."""
    return await _ids(conn, "live_batches", [since])


async def read_progress(conn: Connection, batch_id: str) -> dict[int, Progress]:
    """Read a batch's counters, by shard."""
    rows = await (await conn.execute(query("read_progress"), [batch_id])).fetchall()
    return {shard: Progress(*counters) for shard, *counters in rows}


def _scorecard(row: tuple[Any, ...]) -> Scorecard:
    card = Scorecard(*row)
    return card._replace(scores=row[6].encode(), error=None if row[11] is None else row[11].encode())


async def _ids(conn: Connection, name: str, values: Any) -> list[str]:  # noqa: ANN401 - as the query takes them
    return [key for (key,) in await (await conn.execute(query(name), values)).fetchall()]


async def _rows(conn: Connection, name: str, values: Sequence[Any]) -> list[tuple[Any, ...]]:
    async with conn.cursor(binary=True) as cursor:
        return await (await cursor.execute(query(name), values)).fetchall()
