"""The event log on Redis Streams: one stream per evaluation, one wake-up stream per shard, rules in Lua.

Every append is idempotent by its key: a time-out, which leaves open whether it was executed, is answered by
a repetition.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

from hiredis import pack_command
from pydantic_core import to_json
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import DataError, ResponseError
from typing_extensions import override

from eventlog import keys
from eventlog.codec import RawEntry
from eventlog.events import EventKey
from eventlog.key_quarantine import is_wrong_type, quarantine, with_quarantine
from eventlog.log import (
    EXPIRY_SECONDS,
    Append,
    AppendResponse,
    AppendResult,
    CommitMark,
    EventLog,
    LogUnavailable,
    Mode,
)
from eventlog.redis_errors import QuarantineDeniedError, RedisErrors
from eventlog.scripts import Call, Script

SETTLE_CHUNK = 200
READ_CHUNK = 100
APPEND_CHUNK = 20
"""Evaluations in one call: Redis serves no other client meanwhile, so each takes a millisecond at most."""

LOG_ERRORS = RedisErrors(LogUnavailable)

HERE = Path(__file__).parent
_APPEND = Script(HERE / "append.lua")
_SETTLE = Script(HERE / "settle.lua")
_COMMITTED = Script(HERE / "committed.lua")
_ANSWERS = {answer.value.encode(): answer for answer in AppendResult}


def connect(url: str, *, max_connections: int = 16) -> Redis:
    """Connect without the client's own retries: the caller decides what a failure means."""
    pool = BlockingConnectionPool.from_url(
        url,
        retry=Retry(NoBackoff(), 0),
        socket_timeout=5,
        socket_connect_timeout=3,
        max_connections=max_connections,
        timeout=5,
    )
    pool.connection_class = type("Connection", (_PackedByHiredis, pool.connection_class), {})
    return Redis.from_pool(pool)


class _PackedByHiredis:
    """A connection whose commands are written by hiredis, as its replies are read by it.

    redis-py does so only in its blocking client; packed in Python, commands cost an executor a tenth of
    its time.
    """

    def pack_command(self, *args: Any) -> list[bytes]:  # noqa: ANN401 - redis-py's own types are looser still
        name = args[0].encode() if isinstance(args[0], str) else args[0]
        try:
            return [pack_command((*name.split(), *args[1:]))]
        except TypeError as error:
            raise DataError(str(error)) from error


class RedisEventLog(EventLog):
    """`EventLog` on a Redis or Valkey server."""

    def __init__(self, redis: Redis, *, shards: int = keys.DEFAULT_SHARDS) -> None:
        self.redis = redis
        self.shards = shards

    @classmethod
    def from_url(cls, url: str, *, shards: int = keys.DEFAULT_SHARDS) -> Self:
        """Connect to a server, lazily."""
        return cls(connect(url), shards=shards)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.redis.aclose()

    @override
    async def epoch(self, evaluation_id: str) -> str:
        reply = await self.append([Append(evaluation_id, (), epoch="")])
        return reply[0].epoch

    @override
    async def epochs(self) -> list[str]:
        calls: list[Call] = [
            (keys.append_keys(shard, ["-"]), ["", Mode.NORMAL.value]) for shard in range(self.shards)
        ]
        with LOG_ERRORS:
            return [reply[0].decode() for reply in await _APPEND.run(self.redis, calls)]

    @override
    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        groups = list(self._groups(calls))
        with LOG_ERRORS:
            replies = await _APPEND.run(
                self.redis, [self._append_call([calls[place] for place in group]) for group in groups]
            )
            found: dict[int, AppendResponse] = {}
            for group, raw in zip(groups, replies, strict=True):
                found.update(zip(group, _replies(raw, calls[group[0]].mode), strict=True))
        return [found[place] for place in range(len(calls))]

    def _groups(self, calls: Sequence[Append]) -> Iterator[list[int]]:
        """Group calls that one script call can take: of one shard, epoch and mode."""
        if len({call.evaluation_id for call in calls}) < len(calls):
            yield from ([place] for place in range(len(calls)))  # one evaluation's calls keep their order
            return
        alike: dict[tuple[int, str, Mode], list[int]] = defaultdict(list)
        for place, call in enumerate(calls):
            alike[self._shard(call.evaluation_id), call.epoch, call.mode].append(place)
        for places in alike.values():
            for at in range(0, len(places), APPEND_CHUNK):
                yield places[at : at + APPEND_CHUNK]

    def _append_call(self, calls: Sequence[Append]) -> Call:
        shard = self._shard(calls[0].evaluation_id)
        arguments: list[Any] = [calls[0].epoch, calls[0].mode.value]
        for place, call in enumerate(calls):
            if place > 0:
                arguments.append("")
            for event, body in call.records:
                arguments += (event.attempt, event.sequence, event.type, body)
        return keys.append_keys(shard, [call.evaluation_id for call in calls]), arguments

    @override
    async def read(self, evaluation_ids: Sequence[str], *, limit: int) -> list[list[RawEntry]]:
        names = [
            keys.events_key(self._shard(evaluation_id), evaluation_id) for evaluation_id in evaluation_ids
        ]
        chunks = list(self._chunks(names, evaluation_ids))
        streams: dict[bytes, list[RawEntry]] = {}
        with LOG_ERRORS:
            async with self.redis.pipeline(transaction=False) as pipe:
                pipe.response_callbacks = {}  # raw lists: dictionaries would be built to be thrown away
                for chunk in chunks:
                    beginnings = ("0",) * len(chunk)
                    pipe.execute_command("XREAD", "COUNT", limit, "STREAMS", *chunk, *beginnings)
                for chunk, found in zip(chunks, await pipe.execute(raise_on_error=False), strict=True):
                    streams.update(await self._found(chunk, found, limit))
        return [streams.get(name.encode(), []) for name in names]

    async def _found(self, names: Sequence[str], found: Any, limit: int) -> dict[bytes, list[RawEntry]]:  # noqa: ANN401 - a reply or an error
        """Read a chunk's reply; a key among them that is no stream must not hide the others."""
        if isinstance(found, ResponseError) and "WRONGTYPE" in str(found):
            return {name.encode(): await self._read_alone(name, limit) for name in names}
        if isinstance(found, Exception):
            raise found
        return found or {}

    async def _read_alone(self, name: str, limit: int) -> list[RawEntry]:
        try:
            entries: Any = await self.redis.xrange(name, count=limit)
        except ResponseError as error:
            with suppress(QuarantineDeniedError):
                await quarantine(self.redis, [name])
            return [(b"0-0", [b"error", str(error).encode()])]  # no event: it is refused as garbage
        return [
            (entry_id, [part for pair in fields.items() for part in pair]) for entry_id, fields in entries
        ]

    def _chunks(self, names: Sequence[str], evaluation_ids: Sequence[str]) -> Iterator[list[str]]:
        """Split keys so that each command is of one shard, and short."""
        for places in self._by_shard(evaluation_ids).values():
            for at in range(0, len(places), READ_CHUNK):
                yield [names[place] for place in places[at : at + READ_CHUNK]]

    def _by_shard(self, evaluation_ids: Sequence[str]) -> dict[int, list[int]]:
        places: dict[int, list[int]] = defaultdict(list)
        for place, evaluation_id in enumerate(evaluation_ids):
            places[self._shard(evaluation_id)].append(place)
        return places

    async def closing(self, evaluation_ids: Sequence[str]) -> list[bool]:
        """Return for each evaluation whether its newest attempt is closed, from the append states alone."""
        with LOG_ERRORS:
            async with self.redis.pipeline(transaction=False) as pipe:
                for evaluation_id in evaluation_ids:
                    pipe.execute_command("HEXISTS", self._pair(evaluation_id)[1], "closing")
                found = await pipe.execute(raise_on_error=False)
            return [_is_closing(reply) for reply in found]

    @override
    async def settle(self, marks: Sequence[CommitMark]) -> None:
        calls: list[Call] = []
        for shard, places in self._by_shard([mark.evaluation_id for mark in marks]).items():
            prefixes = keys.events_key(shard, ""), keys.append_state_key(shard, ""), EXPIRY_SECONDS
            for at in range(0, len(places), SETTLE_CHUNK):
                chunk = [_packed(marks[place]) for place in places[at : at + SETTLE_CHUNK]]
                calls.append(([keys.wake_key(shard)], [*prefixes, to_json(chunk)]))
        if calls:
            with LOG_ERRORS:
                await self._run(_SETTLE, calls, [mark.evaluation_id for mark in marks])

    @override
    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        places: list[int] = []
        calls: list[Call] = []
        for shard, mine in self._by_shard(evaluation_ids).items():
            prefixes = keys.events_key(shard, ""), keys.append_state_key(shard, "")
            for at in range(0, len(mine), SETTLE_CHUNK):
                chunk = mine[at : at + SETTLE_CHUNK]
                places += chunk
                calls.append(([keys.wake_key(shard)], [*prefixes, *(evaluation_ids[one] for one in chunk)]))
        with LOG_ERRORS:
            replies = await self._run(_COMMITTED, calls, evaluation_ids) if calls else []
        marks = dict(zip(places, (mark for reply in replies for mark in reply), strict=True))
        return [_mark(marks[place]) for place in range(len(evaluation_ids))]

    async def _run(self, script: Script, calls: list[Call], evaluation_ids: Sequence[str]) -> list[Any]:
        """Run a script that names its keys by prefixes and ids."""
        names = [name for each in evaluation_ids for name in self._pair(each)]
        return await with_quarantine(self.redis, names, lambda: script.run(self.redis, calls))

    @override
    async def now_ms(self) -> int:
        with LOG_ERRORS:
            seconds, micros = await self.redis.time()
        return seconds * 1000 + micros // 1000

    def _shard(self, evaluation_id: str) -> int:
        return keys.shard_of(evaluation_id, self.shards)

    def _pair(self, evaluation_id: str) -> list[str]:
        shard = self._shard(evaluation_id)
        return [keys.events_key(shard, evaluation_id), keys.append_state_key(shard, evaluation_id)]


def _replies(raw: list[Any], mode: Mode) -> Iterator[AppendResponse]:
    """Read the script's response for each evaluation; raises the error of a rejected one."""
    epoch = raw[0].decode()
    step = 2 if mode is Mode.CLAIM else 1
    for at in range(1, len(raw), step):
        if isinstance(raw[at], Exception):
            raise raw[at]
        answers = tuple(_ANSWERS[answer] for answer in raw[at])
        stream = tuple((entry[0], entry[1]) for entry in raw[at + 1]) if step == 2 else ()
        yield AppendResponse(answers, epoch, stream)


def _is_closing(reply: object) -> bool:
    """Read whether an append state has a closing sequence; a key of the wrong type has none."""
    if isinstance(reply, Exception) and not is_wrong_type(reply):
        raise reply
    return reply == 1


def _packed(mark: CommitMark) -> tuple[str, int, int, bool]:
    return mark.evaluation_id, mark.attempt, mark.sequence, mark.ended


def _mark(mark: bytes | None) -> EventKey | None:
    if mark is None:
        return None
    attempt, _, sequence = mark.partition(b":")
    return int(attempt), int(sequence)
