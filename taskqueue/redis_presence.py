"""Presence on Redis: a key that lives while its executor does, and an index, so that nobody scans."""

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis

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
        names = list(incarnations)
        with translated():
            async with self._redis.pipeline(transaction=False) as pipe:
                for name in names:
                    pipe.exists(keys.executor_key(name))
                found = await answers(pipe)
        return {name for name, lives in zip(names, found, strict=True) if lives}

    async def present(self) -> list[Presence]:
        """List all executors that are alive."""
        with translated():
            names: list[Any] = await self._redis.zrange(keys.EXECUTORS, 0, -1)
            async with self._redis.pipeline(transaction=False) as pipe:
                for name in names:
                    pipe.get(keys.executor_key(name.decode()))
                bodies = await answers(pipe)
        return [presence for body in bodies if body and (presence := _presence(body))]


def _presence(body: bytes) -> Presence | None:
    """Read a heartbeat; one that can't be read must not hide the others."""
    try:
        return _PRESENCE.validate_json(body)
    except ValidationError as error:
        logger.warning("a heartbeat can't be read", extra={"heartbeat": body[:200], "error": str(error)})
        return None
