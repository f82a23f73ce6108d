"""The log on Redis Streams: one stream an evaluation, one wake-up stream a shard, rules in Lua.

Every append is idempotent by its key, so a time-out, which may mean that it happened or that it did
not, is answered by asking again.
"""

from collections import defaultdict
from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any, Self, cast

from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import (
    BusyLoadingError,
    ConnectionError,  # noqa: A004 - redis' own, caught below
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    TimeoutError,  # noqa: A004 - redis' own, caught below
)

from eventlog import keys
from eventlog.codec import RawEntry
from eventlog.events import EventKey
from eventlog.log import EXPIRY_SECONDS, Answer, Append, LogUnavailable, Mark, Reply

SETTLE_CHUNK = 1_000
"""Evaluations in one settle call: Redis serves nobody else meanwhile."""

UNAVAILABLE = (
    ConnectionError,
    TimeoutError,
    BusyLoadingError,
    ReadOnlyError,
    OutOfMemoryError,
    OSError,
)


class _Script:
    """A Lua file, called by digest and loaded again whenever Redis has forgotten it."""

    def __init__(self, name: str) -> None:
        self.source = (Path(__file__).parent / name).read_text(encoding="utf-8")
        self.sha = sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    async def run(self, redis: Redis, calls: Sequence[tuple[list[str], list[Any]]]) -> list[Any]:
        """Run the script once a call, all in one round trip."""
        replies = await self._pipelined(redis, calls)
        if any(isinstance(reply, NoScriptError) for reply in replies):
            await redis.script_load(self.source)
            replies = await self._pipelined(redis, calls)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    async def _pipelined(self, redis: Redis, calls: Sequence[tuple[list[str], list[Any]]]) -> list[Any]:
        async with redis.pipeline(transaction=False) as pipe:
            for key_names, arguments in calls:
                pipe.execute_command("EVALSHA", self.sha, len(key_names), *key_names, *arguments)
            return await pipe.execute(raise_on_error=False)


_APPEND = _Script("append.lua")
_SETTLE = _Script("settle.lua")


def connect(url: str, *, max_connections: int = 32) -> Redis:
    """Connect with the client's own retries off: whoever calls decides what a failure means."""
    return Redis.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=5,
        socket_connect_timeout=3,
        max_connections=max_connections,
    )


class RedisEventLog:
    """`EventLog` on a Redis or Valkey server."""

    def __init__(self, redis: Redis, *, shards: int = keys.DEFAULT_SHARDS) -> None:
        self.redis = redis
        self.shards = shards

    @classmethod
    def from_url(cls, url: str, *, shards: int = keys.DEFAULT_SHARDS) -> Self:
        """Connect to a server, lazily."""
        return cls(connect(url), shards=shards)

    async def aclose(self) -> None:
        """Give the connections back."""
        await self.redis.aclose()

    async def epoch(self, evaluation_id: str) -> str:
        """Return the epoch of the shard that holds this evaluation."""
        reply = await self.append([Append(evaluation_id, (), epoch="")])
        return reply[0].epoch

    async def append(self, calls: Sequence[Append]) -> list[Reply]:
        """Append events, each call atomically; calls of several evaluations share a round trip."""
        with _translated():
            replies = await _APPEND.run(self.redis, [self._append_call(call) for call in calls])
        return [_reply(raw) for raw in replies]

    def _append_call(self, call: Append) -> tuple[list[str], list[Any]]:
        arguments: list[Any] = [call.epoch, call.mode.value]
        for event, body in call.records:
            arguments += (event.attempt, event.sequence, event.type, body)
        shard = self._shard(call.evaluation_id)
        names = [*self._pair(call.evaluation_id), keys.wake_key(shard), keys.epoch_key(shard)]
        return names, arguments

    async def read(self, evaluation_ids: Sequence[str], *, limit: int) -> list[list[RawEntry]]:
        """Return each evaluation's entries in order of arrival, at most `limit` of each."""
        with _translated():
            async with self.redis.pipeline(transaction=False) as pipe:
                pipe.response_callbacks = {}  # raw lists: dictionaries would be built to be thrown away
                for evaluation_id in evaluation_ids:
                    key = keys.events_key(self._shard(evaluation_id), evaluation_id)
                    pipe.execute_command("XRANGE", key, "-", "+", "COUNT", limit)
                return cast("list[list[RawEntry]]", await pipe.execute())

    async def closing(self, evaluation_ids: Sequence[str]) -> list[bool]:
        """Say which evaluations' newest attempt is closed, by their fences alone."""
        with _translated():
            async with self.redis.pipeline(transaction=False) as pipe:
                for evaluation_id in evaluation_ids:
                    pipe.execute_command("HEXISTS", self._pair(evaluation_id)[1], "closing")
                return [bool(closed) for closed in await pipe.execute()]

    async def settle(self, marks: Sequence[Mark]) -> None:
        """Record how far Postgres has come, and let ended evaluations' streams expire."""
        calls = []
        for at in range(0, len(marks), SETTLE_CHUNK):
            calls += self._settle_calls(marks[at : at + SETTLE_CHUNK])
        if calls:
            with _translated():
                await _SETTLE.run(self.redis, calls)

    def _settle_calls(self, marks: Sequence[Mark]) -> list[tuple[list[str], list[Any]]]:
        by_shard: dict[int, tuple[list[str], list[Any]]] = defaultdict(lambda: ([], [EXPIRY_SECONDS]))
        for mark in marks:
            names, arguments = by_shard[self._shard(mark.evaluation_id)]
            names += self._pair(mark.evaluation_id)
            arguments += (mark.attempt, mark.sequence, int(mark.ended))
        return list(by_shard.values())

    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        """Return how far Postgres has each evaluation; None where the stream is gone."""
        with _translated():
            async with self.redis.pipeline(transaction=False) as pipe:
                for evaluation_id in evaluation_ids:
                    stream, fence = self._pair(evaluation_id)
                    pipe.execute_command("EXISTS", stream)
                    pipe.execute_command("HGET", fence, "committed")
                found = await pipe.execute()
        return [_mark(exists, mark) for exists, mark in zip(found[::2], found[1::2], strict=True)]

    async def now_ms(self) -> int:
        """Return the log's own clock, the one its entry ids are made of."""
        with _translated():
            seconds, micros = await self.redis.time()
        return seconds * 1000 + micros // 1000

    def _shard(self, evaluation_id: str) -> int:
        return keys.shard_of(evaluation_id, self.shards)

    def _pair(self, evaluation_id: str) -> list[str]:
        shard = self._shard(evaluation_id)
        return [keys.events_key(shard, evaluation_id), keys.fence_key(shard, evaluation_id)]


class _translated:  # noqa: N801 - used as a statement
    """Turn what means "not now" into `LogUnavailable`; a refused command stays the bug it is."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, UNAVAILABLE):
            raise LogUnavailable(str(error) or type(error).__name__) from error


def _reply(raw: list[Any]) -> Reply:
    epoch, answers, *stream = raw
    return Reply(
        answers=tuple(Answer(answer.decode()) for answer in answers),
        epoch=epoch.decode(),
        stream=tuple((entry[0], entry[1]) for entry in stream[0]) if stream else (),
    )


def _mark(exists: int, mark: bytes | None) -> EventKey | None:
    if not exists:
        return None
    attempt, _, sequence = (mark or b"0:-1").partition(b":")
    return int(attempt), int(sequence)
