"""The executor registry on Redis: a key with a TTL for each instance, and a sorted set as their index."""

import logging
from collections.abc import Iterable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from redis.asyncio import Redis
from typing_extensions import override

from eventlog.key_quarantine import with_quarantine
from taskqueue import keys
from taskqueue.executor_registry import INSTANCE_TTL, ExecutorInstance, ExecutorRegistry
from taskqueue.refusals import QUEUE_ERRORS, answers

logger = logging.getLogger(__name__)

_INSTANCE: TypeAdapter[ExecutorInstance] = TypeAdapter(ExecutorInstance)


class RedisExecutorRegistry(ExecutorRegistry):
    """`ExecutorRegistry` on a Redis or Valkey server."""

    def __init__(self, redis: Redis, *, lifetime: timedelta = INSTANCE_TTL) -> None:
        self._redis = redis
        self._lifetime = lifetime

    @override
    async def heartbeat(self, instance: ExecutorInstance) -> None:
        with QUEUE_ERRORS:
            await with_quarantine(self._redis, [keys.EXECUTORS], partial(self._renew, instance))

    async def _renew(self, instance: ExecutorInstance) -> None:
        seconds, micros = await self._redis.time()
        now = seconds + micros / 1_000_000
        async with self._redis.pipeline(transaction=False) as pipe:
            body = _INSTANCE.dump_json(instance, by_alias=True)
            pipe.set(keys.executor_key(instance.instance_id), body, px=self._lifetime)
            pipe.zadd(keys.EXECUTORS, {instance.instance_id: now})
            pipe.zremrangebyscore(keys.EXECUTORS, "-inf", now - self._lifetime.total_seconds())
            await answers(pipe)

    @override
    async def deregister(self, instance_id: str) -> None:
        with QUEUE_ERRORS:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.unlink(keys.executor_key(instance_id))
                pipe.zrem(keys.EXECUTORS, instance_id)
                await answers(pipe)

    @override
    async def filter_live(self, instance_ids: Iterable[str]) -> set[str]:
        ids = list(instance_ids)
        names = [keys.executor_key(each) for each in ids]
        with QUEUE_ERRORS:
            # Not EXISTS: a key of the wrong type has no TTL, so its instance would never expire.
            bodies = await with_quarantine(self._redis, names, partial(self._bodies, names))
        return {each for each, body in zip(ids, bodies, strict=True) if body is not None}

    @override
    async def live(self) -> list[ExecutorInstance]:
        with QUEUE_ERRORS:
            read_index = partial(self._redis.zrange, keys.EXECUTORS, 0, -1)
            index: list[Any] = await with_quarantine(self._redis, [keys.EXECUTORS], read_index)
            names = [keys.executor_key(name.decode()) for name in index]
            bodies = await with_quarantine(self._redis, names, partial(self._bodies, names))
        return [instance for body in bodies if body and (instance := _instance(body))]

    async def _bodies(self, names: Sequence[str]) -> list[Any]:
        async with self._redis.pipeline(transaction=False) as pipe:
            for name in names:
                pipe.get(name)
            return await answers(pipe)


def _instance(body: bytes) -> ExecutorInstance | None:
    """Decode a heartbeat; one that is invalid must not hide the others."""
    try:
        return _INSTANCE.validate_json(body)
    except ValidationError as error:
        logger.warning(
            "skipping an invalid heartbeat", extra={"heartbeat": body[:200], "error": str(error)}
        )
        return None
