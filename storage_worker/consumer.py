"""The consumer of the wake-up streams: groups, redelivery, takeover from dead workers, and trimming.

FastStream reads new entries. This module adds what it leaves to its users: consumer groups that start at 0,
so that nothing written before them is missed; redelivery of the entries that were pending when this worker
died; takeover of those of dead workers (XAUTOCLAIM); and trimming of what every group has acknowledged.
"""

import asyncio
import logging
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import RedisError, ResponseError

from eventlog.backoff import Backoff
from eventlog.codec import QuarantineReason, RejectedEntry
from eventlog.key_quarantine import with_quarantine
from eventlog.keys import GROUP, events_key, shard_of, wake_key
from eventlog.log import LogUnavailable
from eventlog.redis_streams import LOG_ERRORS
from eventlog.scripts import Script
from projections.database.errors import DatabaseUnavailable
from projections.folds.change import QuarantineRow, quarantine_row
from storage_worker.storage import Storage
from storage_worker.stream_scan import StreamScan

logger = logging.getLogger(__name__)

_ACK = Script(Path(__file__).parent / "ack.lua")

WakeUp = tuple[bytes, dict[bytes, bytes]]
"""An entry's id and fields."""
MAX_ID_BYTES = 800
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
"""What no `Name` may contain; all else that an envelope accepts, a wake-up may name."""


def parse_wake_ups(wake_ups: Sequence[WakeUp]) -> tuple[list[str], list[QuarantineRow]]:
    """Return the evaluations that wake-ups name, and the entries that name none, with the reason."""
    evaluation_ids: list[str] = []
    rejected: list[QuarantineRow] = []
    for entry_id, fields in wake_ups:
        raw = fields.get(b"id", b"") if fields else b""
        try:
            evaluation_id = raw.decode()
            is_valid = 0 < len(raw) <= MAX_ID_BYTES and not _CONTROL.search(evaluation_id)
        except UnicodeDecodeError:
            is_valid = False
        if is_valid:
            evaluation_ids.append(evaluation_id)
        elif fields:
            detail = "a wake-up has one field `id`: an evaluation id, UTF-8 without control characters"
            entry = RejectedEntry(entry_id, QuarantineReason.BAD_WAKE_UP, detail, repr(fields).encode())
            rejected.append(quarantine_row(None, entry))
    return evaluation_ids, rejected


class Consumer:
    """One consumer of all wake-up streams."""

    def __init__(self, redis: Redis, storage: Storage, *, shards: int, consumer: str) -> None:
        self._redis = redis
        self._storage = storage
        self._streams = [wake_key(shard) for shard in range(shards)]
        self._consumer = consumer
        self._shards = shards
        self.scan = StreamScan(redis, storage, shards=shards)

    async def ensure_groups(self) -> None:
        """Set every group to the first entry that its stream still holds.

        Also a group that exists: a worker that died while it started may have left one that begins at the
        end (FastStream makes them so), and what it skips would never be read. Reading a wake-up twice is
        idempotent.
        """
        for stream in self._streams:
            await with_quarantine(self._redis, [stream], partial(self._ensure_group, stream))

    async def _ensure_group(self, stream: str) -> None:
        try:
            await self._redis.xgroup_create(stream, GROUP, id="0", mkstream=True)
        except ResponseError as error:
            if "BUSYGROUP" not in str(error):
                raise
            await self._redis.xgroup_setid(stream, GROUP, id="0")

    async def redeliver_pending(self, *, count: int) -> int:
        """Process the entries that were pending for this consumer when it last stopped."""
        drained = 0
        for stream in self._streams:
            while True:
                reply = await self._redis.xreadgroup(GROUP, self._consumer, {stream: "0"}, count=count)
                wake_ups = _entries(reply)
                if not wake_ups:
                    break
                await self.finish(stream, wake_ups)
                drained += len(wake_ups)
        return drained

    async def claim_stalled(self, *, idle_ms: int, count: int) -> int:
        """Claim and process entries that were pending elsewhere for too long, at most `count` a stream."""
        claimed = 0
        for stream in self._streams:
            _, wake_ups, *_ = await self._redis.xautoclaim(
                stream, GROUP, self._consumer, min_idle_time=idle_ms, count=count
            )
            if wake_ups:
                await self.finish(stream, wake_ups)
                claimed += len(wake_ups)
        if claimed:
            logger.info("claimed the pending wake-ups of a dead worker", extra={"count": claimed})
        return claimed

    async def finish(self, stream: str, wake_ups: Sequence[WakeUp]) -> None:
        """Store the evaluations, and only then acknowledge: a crash repeats, it never loses."""
        with self._storage.metrics.processing(entry_id for entry_id, _ in wake_ups):
            evaluation_ids, rejected = parse_wake_ups(wake_ups)
            await self._storage.process(evaluation_ids, rejected)
            await self._quarantine_misplaced(stream, evaluation_ids)
            await self._acknowledge(stream, wake_ups)

    async def _quarantine_misplaced(self, stream: str, evaluation_ids: Sequence[str]) -> None:
        """Quarantine events beside a wake-up that was written to another shard than its evaluation's."""
        shard = self._streams.index(stream)
        strays = {key for key in evaluation_ids if shard_of(key, self._shards) != shard}
        # An unavailable server is no reason to keep the wake-ups pending: the next scan finds the streams.
        with suppress(RedisError, OSError, LogUnavailable, DatabaseUnavailable):
            await self.scan.quarantine([events_key(shard, key).encode() for key in sorted(strays)])

    async def _acknowledge(self, stream: str, wake_ups: Sequence[WakeUp]) -> None:
        """Acknowledge what is stored, with retries: a lost acknowledgement would repeat the whole batch."""
        ids = b" ".join(entry_id for entry_id, _ in wake_ups)
        backoff = Backoff(longest=2.0)
        while True:
            try:
                with LOG_ERRORS:
                    await _ACK.run(self._redis, [([stream], [GROUP, ids])])
            except LogUnavailable:
                await asyncio.sleep(backoff.next())
            else:
                return

    async def trim(self) -> None:
        """Trim entries that have been read and acknowledged."""
        for stream in self._streams:
            groups = await self._redis.xinfo_groups(stream)
            delivered = [g["last-delivered-id"] for g in groups if _text(g["name"]) == GROUP]
            if delivered:
                pending = await self._redis.xpending(stream, GROUP)
                oldest = min((i for i in (delivered[0], pending["min"]) if i), key=_order)
                await self._redis.xtrim(stream, minid=_text(oldest))

    async def lag(self) -> dict[str, int]:
        """Count wake-ups not yet read, and those pending."""
        unread = pending = 0
        for stream in self._streams:
            for group in await self._redis.xinfo_groups(stream):
                pending += group["pending"]
                unread += await self._unread(stream, group)
        return {"unread": unread, "in_hand": pending}

    async def _unread(self, stream: str, group: Mapping[str, Any]) -> int:
        """Count what a group has not read; all that is there, where Redis has lost count."""
        lag = group.get("lag")
        if lag is None:
            return max(0, await self._redis.xlen(stream) - int(group["pending"]))
        return int(lag)


def _entries(reply: Any) -> list[WakeUp]:  # noqa: ANN401 - a list in RESP2, a mapping in RESP3
    if not reply:
        return []
    if isinstance(reply, dict):
        return [entry for batches in reply.values() for batch in batches for entry in batch]
    return [entry for _, batch in reply for entry in batch]


def _text(value: bytes | str) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _order(entry_id: bytes | str) -> tuple[int, int]:
    milliseconds, _, count = _text(entry_id).partition("-")
    return int(milliseconds), int(count or 0)
