"""The board on Redis: one hash of listings; a spec and a hash of contexts for each batch."""

import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import Any

from pydantic import TypeAdapter, ValidationError
from pydantic_core import from_json, to_json
from redis.asyncio import Redis

from eventlog.key_quarantine import with_quarantine
from taskqueue import keys
from taskqueue.board import Listing
from taskqueue.refusals import answers, translated

logger = logging.getLogger(__name__)

_KEYS = (keys.spec_key, keys.contexts_key, keys.lanes_key)
_LISTING: TypeAdapter[Listing] = TypeAdapter(Listing)


class RedisBoard:
    """`BatchBoard` on a Redis or Valkey server."""

    def __init__(self, redis: Redis) -> None:
        self._redis = redis

    async def announce(self, listing: Listing, spec: bytes) -> None:
        """Put a batch up, or change its listing."""
        with translated():
            await self._on(keys.BOARD, partial(self._announce, listing, spec))

    async def _announce(self, listing: Listing, spec: bytes) -> None:
        async with self._redis.pipeline(transaction=False) as pipe:
            # The spec first: whoever sees a listing finds what it is about.
            pipe.set(keys.spec_key(listing.batch_id), spec)
            pipe.hset(keys.BOARD, listing.batch_id, _LISTING.dump_json(listing))
            await answers(pipe)

    async def _on(self, name: str, command: Callable[[], Awaitable[Any]]) -> Any:  # noqa: ANN401 - a reply
        return await with_quarantine(self._redis, [name], command)

    async def listings(self) -> list[Listing]:
        """List all batches that are up."""
        with translated():
            bodies: Any = await self._on(keys.BOARD, partial(self._redis.hvals, keys.BOARD))
        return [listing for body in bodies if (listing := _listing(body))]

    async def spec(self, batch_id: str) -> bytes | None:
        """Return a batch's spec; None if it is not up."""
        name = keys.spec_key(batch_id)
        with translated():
            body: Any = await self._on(name, partial(self._redis.get, name))
        return body  # type: ignore[no-any-return]  # nothing here decodes replies

    async def take_down(self, batch_id: str) -> None:
        """Remove a batch and all that was put up for it."""
        with translated():
            async with self._redis.pipeline(transaction=False) as pipe:
                pipe.hdel(keys.BOARD, batch_id)
                pipe.unlink(*(key(batch_id) for key in _KEYS))
                await answers(pipe)

    async def put_contexts(self, batch_id: str, contexts: Mapping[str, bytes]) -> None:
        """Leave for some evaluations what earlier ones of their group have come to."""
        if contexts:
            name = keys.contexts_key(batch_id)
            with translated():
                await self._on(name, partial(self._redis.hset, name, items=_flat(contexts)))

    async def contexts(self, batch_id: str, evaluation_ids: Sequence[str]) -> list[bytes | None]:
        """Return what was left for some evaluations."""
        if not evaluation_ids:
            return []
        name = keys.contexts_key(batch_id)
        with translated():
            found: list[Any] = await self._on(name, partial(self._redis.hmget, name, list(evaluation_ids)))
        return found

    async def note_lanes(self, batch_id: str, lanes: Mapping[str, Sequence[str]]) -> None:
        """Say which lanes each line of a batch has to ask."""
        if lanes:
            said = {channel: to_json(list(names)) for channel, names in lanes.items()}
            name = keys.lanes_key(batch_id)
            with translated():
                await self._on(name, partial(self._redis.hset, name, items=_flat(said)))

    async def lanes(self, batch_id: str) -> Mapping[str, tuple[str, ...]]:
        """Return which lanes each line of a batch has to ask, as far as an executor has said so."""
        name = keys.lanes_key(batch_id)
        with translated():
            found: Any = await self._on(name, partial(self._redis.hgetall, name))
        return {channel.decode(): tuple(from_json(names)) for channel, names in found.items()}


def _flat(contexts: Mapping[str, bytes]) -> list[Any]:
    return [part for pair in contexts.items() for part in pair]


def _listing(body: bytes) -> Listing | None:
    """Read a listing; one that can't be read must not hide the others."""
    try:
        return _LISTING.validate_json(body)
    except ValidationError as error:
        logger.warning("a listing can't be read", extra={"listing": body[:200], "error": str(error)})
        return None
