"""Lua behind a typed call: loaded once, called by digest, many calls in one round trip."""

from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import NoScriptError

Call = tuple[list[str], list[Any]]
"""Keys and arguments of one call."""


class Script:
    """A Lua file, loaded again whenever Redis has forgotten it."""

    def __init__(self, path: Path) -> None:
        self._source = path.read_text(encoding="utf-8")
        self._sha = sha1(self._source.encode(), usedforsecurity=False).hexdigest()

    async def run(self, redis: Redis, calls: Sequence[Call]) -> list[Any]:
        """Run the script once a call, all in one round trip."""
        replies = await self._pipelined(redis, calls)
        while any(isinstance(reply, NoScriptError) for reply in replies):
            await redis.script_load(self._source)
            replies = await self._pipelined(redis, calls)
        for reply in replies:
            if isinstance(reply, Exception):
                raise reply
        return replies

    async def _pipelined(self, redis: Redis, calls: Sequence[Call]) -> list[Any]:
        async with redis.pipeline(transaction=False) as pipe:
            for keys, arguments in calls:
                pipe.execute_command("EVALSHA", self._sha, len(keys), *keys, *arguments)
            return await pipe.execute(raise_on_error=False)
