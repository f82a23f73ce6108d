"""The batch registry on Redis: one hash of entries; a spec and a hash of contexts for each batch."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from redis.asyncio import Redis
from typing_extensions import override

from eventlog.key_quarantine import with_quarantine
from taskqueue import keys
from taskqueue.batch_registry import BatchEntry, BatchRegistry
from taskqueue.refusals import QUEUE_ERRORS, answers

logger = logging.getLogger(__name__)

_KEYS = (keys.spec_key, keys.contexts_key, keys.lanes_key)
_ENTRY: TypeAdapter[BatchEntry] = TypeAdapter(BatchEntry)


class RedisBatchRegistry(BatchRegistry):
    """`BatchRegistry` on a Redis or Valkey server."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    @override
    async def upsert(self, entry: BatchEntry, spec: bytes) -> None:
        with QUEUE_ERRORS:
            await self._on(keys.BATCHES, partial(self._upsert, entry, spec))

    async def _upsert(self, entry: BatchEntry, spec: bytes) -> None:
        async with self._redis.pipeline(transaction=False) as pipe:
            # The spec first: an executor that reads an entry must find its spec.
            pipe.set(keys.spec_key(entry.batch_id), spec)
            pipe.hset(keys.BATCHES, entry.batch_id, _ENTRY.dump_json(entry, by_alias=True))
            await answers(pipe)

    async def _on(self, name: str, command: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - a reply
        return await with_quarantine(self._redis, [name], command)

    @override
    async def list(self) -> Sequence[BatchEntry]:
        with QUEUE_ERRORS:
            bodies: Any = await self._on(keys.BATCHES, partial(self._redis.hvals, keys.BATCHES))
        return [entry for body in bodies if (entry := _entry(body))]

    @override
    async def spec(self, batch_id: str) -> bytes | None:
        name = keys.spec_key(batch_id)
        with QUEUE_ERRORS:
            body: Any = await self._on(name, partial(self._redis.get, name))
        return body  # type: ignore[no-any-return]  # bytes: replies are not decoded

    @override
    async def unregister(self, batch_id: str) -> None:
        with QUEUE_ERRORS:
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.hdel(keys.BATCHES, batch_id)
                pipe.unlink(*(key(batch_id) for key in _KEYS))
                await answers(pipe)

    @override
    async def put_contexts(self, batch_id: str, contexts: Mapping[str, bytes]) -> None:
        if contexts:
            name = keys.contexts_key(batch_id)
            with QUEUE_ERRORS:
                await self._on(name, partial(self._redis.hset, name, items=_flat(contexts)))

    @override
    async def contexts(self, batch_id: str, evaluation_ids: Sequence[str]) -> Sequence[bytes | None]:
        if not evaluation_ids:
            return []
        name = keys.contexts_key(batch_id)
        with QUEUE_ERRORS:
            values: Any = await self._on(name, partial(self._redis.hmget, name, list(evaluation_ids)))
        return values  # type: ignore[no-any-return]  # bytes: replies are not decoded

    async def set_lanes(self, batch_id: str, lanes: Mapping[str, Sequence[str]]) -> None:
        """Record which lanes each partition of a batch needs permits of."""
        if lanes:
            encoded = {partition: to_json(list(names)) for partition, names in lanes.items()}
            name = keys.lanes_key(batch_id)
            with QUEUE_ERRORS:
                await self._on(name, partial(self._redis.hset, name, items=_flat(encoded)))

    @override
    async def lanes(self, batch_id: str) -> Mapping[str, tuple[str, ...]]:
        name = keys.lanes_key(batch_id)
        with QUEUE_ERRORS:
            encoded: Any = await self._on(name, partial(self._redis.hgetall, name))
        return {partition.decode(): tuple(from_json(names)) for partition, names in encoded.items()}


def _flat(fields: Mapping[str, bytes]) -> list[Any]:
    return [part for pair in fields.items() for part in pair]


def _entry(body: bytes) -> BatchEntry | None:
    """Decode an entry; one that is invalid must not hide the others."""
    try:
        return _ENTRY.validate_json(body)
    except ValidationError as error:
        logger.warning(
            "skipping an invalid entry of the batch registry",
            extra={"entry": body[:200], "error": str(error)},
        )
        return None
