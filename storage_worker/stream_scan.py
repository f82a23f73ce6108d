"""A bounded SCAN over all streams: finds what no wake-up and no row leads to.

Two kinds of stream are invisible to the wake-ups and to the sweep of the tables: that of an evaluation
without a row whose wake-ups were lost, and one that was written to the wrong shard. The first is stored
like any other. Of the second every entry is quarantined and the key is logged: its evaluation belongs to
another shard, where writers, fences and readers would never meet it.

One cycle goes through the key space once, a page at a time with pauses, so that Redis serves others
meanwhile; a cycle begins at most once an interval, on the worker that holds the sweep's lock.
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
class Found:
    """One page of stream keys."""

    evaluation_ids: Sequence[str]
    misplaced: Sequence[bytes]


def sort_keys(names: Iterable[bytes], *, shards: int) -> Found:
    """Tell the streams in their place, by their evaluation ids, from the keys that are not. Pure."""
    ids, misplaced = [], []
    for name in names:
        key = _STREAM.fullmatch(name)
        evaluation_id = _text(key[2]) if key else None
        if evaluation_id is not None and name == _right_key(evaluation_id, shards):
            ids.append(evaluation_id)
        elif key:
            misplaced.append(name)
    return Found(ids, misplaced)


class StreamScan:
    """One worker's walk through the key space."""

    def __init__(self, redis: Redis, storage: Storage, *, shards: int) -> None:
        self._redis = redis
        self._storage = storage
        self._shards = shards
        self._due = 0.0
        self._is_denied = False

    async def run_if_due(self, interval: timedelta) -> None:
        """Go through the key space once, unless that was done within the interval."""
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
        """Store what has no row, and quarantine what is in the wrong shard."""
        cursor = 0
        while True:
            # Not TYPE stream: it would open every key of the page.
            found: Any = await self._redis.scan(cursor, match="eval:{*}:events:*", count=PAGE)
            cursor, names = int(found[0]), found[1]
            await self._take(sort_keys(names, shards=self._shards))
            if not cursor:
                return
            await asyncio.sleep(PAUSE)

    async def _take(self, found: Found) -> None:
        await self.quarantine(found.misplaced)
        unknown = await self._storage.without_row(found.evaluation_ids)
        if unknown:
            logger.info("found evaluations that no wake-up named", extra={"count": len(unknown)})
            await self._storage.store(unknown)

    async def quarantine(self, misplaced: Sequence[bytes]) -> None:
        """Keep the entries of streams in the wrong shard; a key with new ones is logged."""
        for name in misplaced:
            kept = await self._storage.quarantine(await self._refused(name))
            if kept:
                extra = {"key": name.decode(errors="replace"), "entries": kept}
                logger.warning("stream in the wrong shard: its entries were quarantined", extra=extra)

    async def _refused(self, name: bytes) -> list[QuarantineRow]:
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
    shown = name.decode(errors="backslashreplace")
    if evaluation_id is None:
        return f"written to {shown!r}, which names no evaluation"
    right = _right_key(evaluation_id, shards).decode()
    return f"written to {shown!r}; with {shards} shards the key is {right!r}"


def _body(fields: dict[bytes, bytes]) -> bytes:
    return fields.get(b"event") or repr(fields).encode()


def _text(raw: bytes) -> str | None:
    """Read an evaluation id; None where no envelope could carry it."""
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return None
    return text if text and not re.search(r"[\x00-\x1f\x7f]", text) else None
