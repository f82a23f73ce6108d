"""The fast pass over a page: evaluations with a plain history and exactly the rows that follow from it.

One row of one query has everything of an evaluation, so that most of a batch is compared without a look at
single columns. The pass only clears evaluations, and reports nothing: those that it does not clear are
folded and compared by `verify_page`.
"""

import json
import re
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from eventlog.keys import shard_of
from projections.database.connection import Connection
from projections.folds.plain_fold import PlainLog, PlainResult, add_share, plain_fold
from projections.folds.progress import Progress
from projections.sql import query
from projections.verification.pages import BatchExtent

ENTRY_IDS = re.compile(r"[0-9]+-[0-9]+( [0-9]+-[0-9]+)*")
NO_SCORECARD = (None,) * 13
_EVALUATION, _SCORECARD = 9, 22
"""Where the columns of a row's tables end."""


@dataclass(slots=True)
class PlainPage:
    """The cleared evaluations of a page."""

    cleared: dict[str, tuple[int, PlainResult]] = field(default_factory=dict)
    """Shard and result of each."""
    events: int = 0
    open: int = 0
    recount: defaultdict[int, Progress] = field(default_factory=lambda: defaultdict(Progress))

    def take(self, evaluation_id: str, shard: int, folded: PlainResult) -> None:
        """Count a cleared evaluation."""
        self.cleared[evaluation_id] = shard, folded
        self.events += folded.events
        self.open += folded.card is None
        add_share(self.recount[shard], folded)


async def clear_plain(
    conn: Connection, batch: BatchExtent, ids: Sequence[str], *, shards: int
) -> PlainPage:
    """Fold the plain histories of a page, and clear those that have the rows that follow.

    The session's time zone is UTC.
    """
    page, batch_id = PlainPage(), batch.batch_id
    values = {"month": batch.month, "ids": json.dumps(list(ids)), "batch": batch_id}
    async with conn.cursor(binary=True) as cursor:
        await cursor.execute(query("plain_page"), values)
        for row in await cursor.fetchall():
            key, (types, times, entry_ids, bodies) = row[0], row[_SCORECARD:]
            folded = plain_fold(key, batch_id, PlainLog(types, times, bodies))
            if folded is None or not _are_entries(entry_ids, folded.events):
                continue
            shard, ended_at = shard_of(key, shards), times.rpartition(",")[2] if folded.card else None
            if row[:_SCORECARD] == _expected(key, batch, shard, folded, ended_at):
                page.take(key, shard, folded)
    return page


def _expected(
    key: str, batch: BatchExtent, shard: int, folded: PlainResult, ended_at: str | None
) -> tuple[Any, ...]:
    """Lay out the rows that follow from a plain history, in the order of the query."""
    events, phase, owner, card, _, _ = folded
    row = (key, batch.month, shard, 1, events - 1, phase, owner, False, ended_at)
    if card is None:
        return (*row, *NO_SCORECARD[:10], False, *NO_SCORECARD[11:])
    return (*row, batch.batch_id, 1, "completed", *card, False, False, ended_at)


def _are_entries(entry_ids: str, events: int) -> bool:
    """Whether every event has the id of a stream entry."""
    return ENTRY_IDS.fullmatch(entry_ids) is not None and entry_ids.count(" ") == events - 1
