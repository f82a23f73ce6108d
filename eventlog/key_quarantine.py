"""Keys of a type that Scoreline does not write: moved to a quarantine name where a command meets one.

A key of the wrong type would reject every command for ever, and block whatever shares a call with it.
Redis may be lost in part, so the key is renamed (`eval:quarantine:<ms>:<key>`, kept for a week), one line
is logged, and the command is run again: what the key should have held is recovered as after a loss. A user
that may not rename, as an executor of a deployment, gets `QuarantineDeniedError`, which is transient: a
storage worker or a coordinator renames the key when it meets it.
"""

import logging
import re
from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from hashlib import sha1
from pathlib import Path
from typing import Any, TypeVar

from redis.asyncio import Redis
from redis.exceptions import NoScriptError, ResponseError

from eventlog.redis_errors import QuarantineDeniedError

logger = logging.getLogger(__name__)
T = TypeVar("T")

KEPT_FOR = timedelta(days=7)
_TYPES = tuple(
    (re.compile(pattern), name)
    for pattern, name in (
        (r"eval:\{\d+\}:events:", "stream"),
        (r"eval:\{\d+\}:fence:", "hash"),
        (r"eval:\{\d+\}:wake$", "stream"),
        (r"eval:\{\d+\}:epoch$", "string"),
        (r"eval:(tasks|dlq):\{", "stream"),
        (r"eval:(context|lanes|lane|budget):\{", "hash"),
        (r"eval:batches$", "hash"),
        (r"eval:batch:\{", "string"),
        (r"eval:executors$", "zset"),
        (r"eval:executor:", "string"),
    )
)
_SOURCE = (Path(__file__).parent / "quarantine.lua").read_text(encoding="utf-8")
_SHA = sha1(_SOURCE.encode(), usedforsecurity=False).hexdigest()


def expected_type(key: str) -> str | None:
    """Return the type of a key by its name; None for one that is not ours."""
    return next((name for pattern, name in _TYPES if pattern.match(key)), None)


def is_wrong_type(reply: object) -> bool:
    """Whether a reply, or an error inside of it, reports a key of the wrong type."""
    if isinstance(reply, list):
        return any(isinstance(each, ResponseError) and is_wrong_type(each) for each in reply)
    return isinstance(reply, ResponseError) and "WRONGTYPE" in str(reply)


async def quarantine(redis: Redis, names: Iterable[str]) -> int:
    """Rename those keys that have the wrong type; returns how many. Raises `QuarantineDeniedError`."""
    expected = {name: kind for name in names if (kind := expected_type(name))}
    try:
        moved = await _move(redis, expected) if expected else []
    except ResponseError as error:
        text = f"WRONGTYPE in one of {', '.join(expected)}; this user may not rename it ({error})"
        raise QuarantineDeniedError(text) from error
    for key, found, kept_as in ((part.decode() for part in each) for each in moved):
        what = {"key": key, "found": found, "expected": expected[key], "kept_as": kept_as}
        logger.error("quarantined a key of the wrong type", extra=what)
    return len(moved)


async def with_quarantine(redis: Redis, names: Iterable[str], command: Callable[[], Awaitable[T]]) -> T:
    """Run a command on keys; once more where one of them had the wrong type and was moved."""
    try:
        return await command()
    except ResponseError as error:
        if not is_wrong_type(error) or not await quarantine(redis, names):
            raise
    return await command()


async def _move(redis: Redis, expected: dict[str, str]) -> list[Any]:
    client: Any = redis  # whose commands by name have no types
    arguments = (len(expected), *expected, int(KEPT_FOR.total_seconds()), *expected.values())
    try:
        moved: list[Any] = await client.execute_command("EVALSHA", _SHA, *arguments)
    except NoScriptError:
        await client.script_load(_SOURCE)
        moved = await client.execute_command("EVALSHA", _SHA, *arguments)
    return moved
