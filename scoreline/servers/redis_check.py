"""Checks that Redis is reachable, writable and supported."""

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any

from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from scoreline.servers.availability import TIMEOUT, Unavailable, malformed, redact, silent

_OLDEST_REDIS = (6, 2)


async def check_redis(url: str) -> None:
    """Raise `Unavailable` unless a writable Redis of a known version answers at `url`."""
    where = f"Redis at {redact(url)}"
    try:
        async with asyncio.timeout(TIMEOUT):
            info = await _redis_info(url)
    except ValueError:
        raise malformed("EVAL_REDIS_URL", "redis://user:password@host:6379/0") from None
    except (exceptions.RedisError, OSError) as error:
        raise _redis_refusal(where, error) from None
    if problem := unsupported(info):
        raise Unavailable(where, *problem)
    if info.get("role", "master") != "master":
        raise Unavailable(where, "is a read-only replica", "Set EVAL_REDIS_URL to its primary.")


def unsupported(info: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return why a server of another kind or version can't be used, and what to use instead."""
    match info.get("redis_mode"):
        case "cluster":
            return "is part of a cluster, which is not supported", "Use a Redis or Valkey of its own."
        case "sentinel":
            advice = "Set EVAL_REDIS_URL to its primary (SENTINEL GET-MASTER-ADDR-BY-NAME names it)."
            return "is a Sentinel, which holds no data", advice
    if "dragonfly_version" in info:
        advice = "Use Redis 6.2 or newer, or Valkey."
        return "is a Dragonfly, whose scripts may not name keys themselves", advice
    version = str(info.get("redis_version", "0"))
    if _major_minor(version) < _OLDEST_REDIS:
        return f"is too old (version {version})", "Use Redis 6.2 or newer, or Valkey."
    return None


async def _redis_info(url: str) -> dict[str, Any]:
    # RESP2: a server too old for HELLO still reports its version.
    async with Redis.from_url(url, protocol=2, retry=Retry(NoBackoff(), 0)) as client:
        info: dict[str, Any] = await client.info()
    return info


def _redis_refusal(where: str, error: Exception) -> Unavailable:
    match error:
        case exceptions.AuthenticationError():
            advice = "Correct the user and password in EVAL_REDIS_URL."
            return Unavailable(where, "does not accept the login", advice)
        case exceptions.NoPermissionError():
            return Unavailable(where, "denies this user INFO", "Grant it +info in the ACL.")
        case exceptions.BusyLoadingError():
            return Unavailable(where, "is still loading its data", "Try again in a moment.")
        case exceptions.ConnectionError(__context__=exceptions.RedisError() as beneath):
            return _redis_refusal(where, beneath)
        case exceptions.ConnectionError() | exceptions.TimeoutError() | OSError():
            return silent(where, _system_reason(error), "EVAL_REDIS_URL")
        case _:
            advice = "Check the host and port in EVAL_REDIS_URL."
            return Unavailable(where, "does not answer as a Redis does", advice)


def _system_reason(error: BaseException) -> str:
    """The reason beneath a driver's error; drivers raise theirs while they handle it."""
    match error:
        case TimeoutError():
            return "no answer in time"
        case socket.gaierror():
            return "unknown host name"
        case ssl.SSLError():
            return "TLS could not be agreed on"
        case OSError(errno=number) if number in _SOCKET_REASONS:
            return _SOCKET_REASONS[number]
        case _ if error.__context__ is not None:
            return _system_reason(error.__context__)
        case _:
            return "connection failed"


_SOCKET_REASONS = {
    errno.ECONNREFUSED: "connection refused",
    errno.ENOENT: "no such socket",
    errno.EACCES: "permission denied",
    errno.EHOSTUNREACH: "no route to the host",
    errno.ENETUNREACH: "no route to the host",
    errno.ECONNRESET: "connection closed",
}


def _major_minor(version: str) -> tuple[int, int]:
    major, minor, *_ = (int(part) for part in re.findall(r"\d+", f"{version}.0.0"))
    return major, minor
