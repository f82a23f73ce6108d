"""Presence on Redis: a key that lives while its executor does, and an index, so that nobody scans."""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis

from eventlog.key_quarantine import with_quarantine
from taskqueue import keys
from taskqueue.presence import LIFETIME, Presence
from taskqueue.refusals import answers, translated

logger = logging.getLogger(__name__)

_PRESENCE: TypeAdapter[Presence] = TypeAdapter(Presence)


class RedisAttendance:
    """`Attendance` on a Redis or Valkey server."""

    def __init__(self, redis: Redis, *, lifetime: timedelta = LIFETIME) -> None:
        self._redis = redis
        self._lifetime = lifetime

    async def beat(self, presence: Presence) -> None:
        """Say that an executor is alive."""
        with translated():
            await with_quarantine(self._redis, [keys.EXECUTORS], partial(self._beat, presence))

    async def _beat(self, presence: Presence) -> None:
        seconds, micros = await self._redis.time()
        now = seconds + micros / 1_000_000
        async with self._redis.pipeline(transaction=False) as pipe:
            body = _PRESENCE.dump_json(presence)
            pipe.set(keys.executor_key(presence.incarnation), body, px=self._lifetime)
            pipe.zadd(keys.EXECUTORS, {presence.incarnation: now})
            pipe.zremrangebyscore(keys.EXECUTORS, "-inf", now - self._lifetime.total_seconds())
            await answers(pipe)

    async def leave(self, incarnation: str) -> None:
        """Say that an executor has ended in good order."""
        with translated():
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.unlink(keys.executor_key(incarnation))
                pipe.zrem(keys.EXECUTORS, incarnation)
                await answers(pipe)

    async def live(self, incarnations: Iterable[str]) -> set[str]:
        """Return those of these executors that are alive."""
        listed = list(incarnations)
        names = [keys.executor_key(each) for each in listed]
        with translated():
            # Not EXISTS: a key of the wrong type has no expiry, and its executor would live for ever.
            found = await with_quarantine(self._redis, names, partial(self._bodies, names))
        return {each for each, body in zip(listed, found, strict=True) if body is not None}

    async def present(self) -> list[Presence]:
        """List all executors that are alive."""
        with translated():
            index = partial(self._redis.zrange, keys.EXECUTORS, 0, -1)
            found: list[Any] = await with_quarantine(self._redis, [keys.EXECUTORS], index)
            names = [keys.executor_key(name.decode()) for name in found]
            bodies = await with_quarantine(self._redis, names, partial(self._bodies, names))
        return [presence for body in bodies if body and (presence := _presence(body))]

    async def _bodies(self, names: Sequence[str]) -> list[Any]:
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.get(name)
            return await answers(pipe)


def _presence(body: bytes) -> Presence | None:
    """Read a heartbeat; one that can't be read must not hide the others."""
    try:
        return _PRESENCE.validate_json(body)
    except ValidationError as error:
        logger.warning("a heartbeat can't be read", extra={"heartbeat": body[:200], "error": str(error)})
        return None
