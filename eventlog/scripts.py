"""Lua scripts behind a typed call: loaded once, called by digest, many calls in one round trip."""

from collections.abc import Sequence
from hashlib import sha1
from pathlib import Path
from typing import Any

from redis.asyncio import Redis
from redis.exceptions import ConnectionError as RedisUnavailable
from redis.exceptions import NoPermissionError, NoScriptError

from eventlog.key_quarantine import is_wrong_type, quarantine

Call = tuple[list[str], list[Any]]
"""Keys and arguments of one call."""
NAMED_KEYS = 4
"""Keys of a call that an error names."""


class ScriptsMissing(RedisUnavailable):
    """Redis has lost its scripts, and this user may not load any: a coordinator does, within a second."""

    def __init__(self) -> None:
        super().__init__("Redis has lost its scripts; a coordinator loads them again")


class Script:
    """A Lua file, loaded again whenever Redis has lost it."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self.source = path.read_text(encoding="utf-8")
        self.sha = sha1(self.source.encode(), usedforsecurity=False).hexdigest()

    async def run(self, redis: Redis, calls: Sequence[Call]) -> list[Any]:
        """Run the script once a call, all in one round trip."""
        replies = await self._pipelined(redis, calls)
        while any(isinstance(reply, NoScriptError) for reply in replies):
            await self._load(redis)
            replies = await self._pipelined(redis, calls)
        await self._retry_quarantined(redis, calls, replies)
        for (keys, _), reply in zip(calls, replies, strict=True):
            if isinstance(reply, Exception):
                reply.add_note(f"script {self.name}, keys {', '.join(map(str, keys[:NAMED_KEYS]))}")
                raise reply
        return replies

    async def _retry_quarantined(self, redis: Redis, calls: Sequence[Call], replies: list[Any]) -> None:
        """Run those calls again whose keys had the wrong type, once these are moved."""
        places = [place for place, reply in enumerate(replies) if is_wrong_type(reply)]
        names = {name for place in places for name in calls[place][0]}
        if places and await quarantine(redis, sorted(names)):
            again = await self._pipelined(redis, [calls[place] for place in places])
            for place, reply in zip(places, again, strict=True):
                replies[place] = reply

    async def _load(self, redis: Redis) -> None:
        try:
            await redis.script_load(self.source)
        except NoPermissionError:
            raise ScriptsMissing from None

    async def _pipelined(self, redis: Redis, calls: Sequence[Call]) -> list[Any]:
        async with redis.pipeline(transaction=False) as pipe:
            for keys, arguments in calls:
                pipe.execute_command("EVALSHA", self.sha, len(keys), *keys, *arguments)
            return await pipe.execute(raise_on_error=False)


async def load_missing(redis: Redis, scripts: Sequence[Script]) -> int:
    """Load those scripts that Redis does not have, for users that may only call them; returns how many."""
    present = await redis.script_exists(*(script.sha for script in scripts))
    missing = [script for script, is_there in zip(scripts, present, strict=True) if not is_there]
    for script in missing:
        await redis.script_load(script.source)
    return len(missing)
