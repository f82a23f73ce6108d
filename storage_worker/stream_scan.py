"""A bounded SCAN over all streams: finds those that neither a wake-up nor the sweep leads to.

- An evaluation without a row, whose wake-ups were lost: it is stored like any other.
- An evaluation that a worker ended and then died before it marked the stream: the stream is marked again,
  or it would stay in Redis, as the sweep reads only what has not ended.
- A stream in the wrong shard: every entry is quarantined and the key is logged. Its evaluation belongs to
  another shard, which is where its writers append and its readers read.

One cycle goes through the key space once, a page at a time with pauses, so that Redis serves other clients
meanwhile; a cycle begins at most once an interval, on the worker that leads the sweep.
"""

import asyncio
import logging
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoPermissionError, ResponseError

from eventlog.codec import QuarantineReason, RejectedEntry
from eventlog.keys import events_key, shard_of
from projections.folds.change import QuarantineRow, quarantine_row
from storage_worker.storage import Storage

logger = logging.getLogger(__name__)

PAGE = 500
"""Keys that Redis looks at in one call: about a tenth of a millisecond."""
PAUSE = 0.005
MAX_MISPLACED = 5_000
"""Entries of a misplaced stream that are kept."""
_STREAM = re.compile(rb"eval:\{([^}]*)\}:events:(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class StreamPage:
    """One page of stream keys."""

    evaluation_ids: Sequence[str]
    misplaced: Sequence[bytes]


def sort_page(names: Iterable[bytes], *, shards: int) -> StreamPage:
    """Separate streams in their shard, by evaluation id, from misplaced ones. Pure."""
    ids, misplaced = [], []
    for name in names:
        key = _STREAM.fullmatch(name)
        evaluation_id = _text(key[2]) if key else None
        if evaluation_id is not None and name == _right_key(evaluation_id, shards):
            ids.append(evaluation_id)
        elif key:
            misplaced.append(name)
    return StreamPage(ids, misplaced)


class StreamScan:
    """Scans the key space of one Redis."""

    def __init__(self, redis: Redis, storage: Storage, *, shards: int) -> None:
        self._redis = redis
        self._storage = storage
        self._shards = shards
        self._due = 0.0
        self._is_denied = False

    async def run_if_due(self, interval: timedelta) -> None:
        """Run one cycle, unless one began within the interval."""
        if self._is_denied or monotonic() < self._due:
            return
        self._due = monotonic() + interval.total_seconds()
        try:
            await self.run()
        except NoPermissionError:
            self._is_denied = True
            logger.warning(
                "Redis denies SCAN to this user: evaluations without a row whose wake-ups were lost, and"
                " streams in the wrong shard, are not found; grant +scan (deploy/redis/users.acl)"
            )

    async def run(self) -> None:
        """Store what has no row, mark what has ended, and quarantine what is in the wrong shard."""
        cursor = 0
        while True:
            # Not TYPE stream: it would open every key of the page.
            reply: Any = await self._redis.scan(cursor, match="eval:{*}:events:*", count=PAGE)
            cursor, names = int(reply[0]), reply[1]
            await self._process(sort_page(names, shards=self._shards))
            if not cursor:
                return
            await asyncio.sleep(PAUSE)

    async def _process(self, page: StreamPage) -> None:
        await self.quarantine(page.misplaced)
        overlooked = await self._storage.overlooked(page.evaluation_ids)
        if overlooked:
            logger.info("storing evaluations without a row or mark", extra={"count": len(overlooked)})
            await self._storage.store(overlooked)

    async def quarantine(self, misplaced: Sequence[bytes]) -> None:
        """Keep the entries of streams in the wrong shard; a key with new ones is logged."""
        for name in misplaced:
            kept = await self._storage.quarantine(await self._rejected_entries(name))
            if kept:
                extra = {"key": name.decode(errors="replace"), "entries": kept}
                logger.warning("stream in the wrong shard: its entries were quarantined", extra=extra)

    async def _rejected_entries(self, name: bytes) -> list[QuarantineRow]:
        key = _STREAM.fullmatch(name)
        evaluation_id = _text(key[2]) if key else None
        try:
            entries: Any = await self._redis.xrange(name, count=MAX_MISPLACED)
        except ResponseError:  # no stream: no event, either
            return []
        detail = _detail(name, evaluation_id, self._shards)
        return [
            quarantine_row(
                evaluation_id, RejectedEntry(entry_id, QuarantineReason.MISMATCH, detail, _body(fields))
            )
            for entry_id, fields in entries
        ]


def _right_key(evaluation_id: str, shards: int) -> bytes:
    return events_key(shard_of(evaluation_id, shards), evaluation_id).encode()


def _detail(name: bytes, evaluation_id: str | None, shards: int) -> str:
    written = name.decode(errors="backslashreplace")
    if evaluation_id is None:
        return f"written to {written!r}, which names no evaluation"
    right = _right_key(evaluation_id, shards).decode()
    return f"written to {written!r}; with {shards} shards the key is {right!r}"


def _body(fields: dict[bytes, bytes]) -> bytes:
    return fields.get(b"event") or repr(fields).encode()


def _text(raw: bytes) -> str | None:
    """Read an evaluation id; None where no envelope could carry it."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text and not re.search(r"[\x00-\x1f\x7f]", text) else None
