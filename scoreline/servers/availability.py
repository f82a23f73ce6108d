"""Checks that Redis and PostgreSQL are reachable and supported, before a command starts its work.

Messages of the drivers are never printed: they quote parts of the URL, which are the password where it is
badly escaped.
"""

import asyncio
import errno
import re
import socket
import ssl
from collections.abc import Mapping
from typing import Any

import psycopg
from redis import exceptions
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

_TIMEOUT = 3
_OLDEST_REDIS = (6, 2)
_OLDEST_POSTGRES = 14
_POSTGRES_STATE = (
    "SELECT current_setting('server_version_num')::int / 10000,"
    " current_setting('transaction_read_only') = 'on'"
)
_POSTGRES_REASONS = {
    "connection refused": "connection refused",
    "no such file or directory": "no such socket",
    "permission denied": "permission denied",
    "timeout": "no answer in time",
    "resolve host": "unknown host name",
    "host name": "unknown host name",
    "password authentication failed": "user or password not accepted",
    "no password supplied": "a password is required",
    "pg_hba.conf": "pg_hba.conf does not admit this user from here",
    "does not exist": "no such database or role",
    "too many clients": "too many connections",
    "starting up": "still starting up",
    "shutting down": "shutting down",
    "ssl": "TLS could not be agreed on",
}


class Unavailable(Exception):  # noqa: N818 - a state of the world, not a mistake
    """A server can't be used; the message states in one line why, and what to do."""

    def __init__(self, service: str, problem: str, advice: str) -> None:
        super().__init__(f"{service} {problem}. {advice}")
        self.service = service
        self.problem = problem
        self.advice = advice


def redact(url: str) -> str:
    """The URL without its passwords, also where they are badly escaped."""
    without_login = re.sub(r"://([^:@/]*):.*@", r"://\1:***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", without_login, flags=re.IGNORECASE)


async def check_redis(url: str) -> None:
    """Raise `Unavailable` unless a writable Redis of a known version answers at `url`."""
    where = f"Redis at {redact(url)}"
    try:
        async with asyncio.timeout(_TIMEOUT):
            info = await _redis_info(url)
    except ValueError:
        raise _malformed("EVAL_REDIS_URL", "redis://user:password@host:6379/0") from None
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


async def check_postgres(url: str) -> None:
    """Raise `Unavailable` unless a writable PostgreSQL of a known version answers at `url`."""
    where = f"PostgreSQL at {redact(url)}"
    malformed = _malformed("EVAL_POSTGRES_URL", "postgresql://user:password@host:5432/database")
    if not url.startswith(("postgresql://", "postgres://")):
        raise malformed
    try:
        async with asyncio.timeout(_TIMEOUT):
            version, read_only = await _postgres_state(url)
    except (psycopg.ProgrammingError, UnicodeError):
        raise malformed from None
    except (psycopg.Error, OSError) as error:
        raise _silent(where, _postgres_reason(error), "EVAL_POSTGRES_URL") from None
    if version < _OLDEST_POSTGRES:
        advice = f"Use PostgreSQL {_OLDEST_POSTGRES} or newer."
        raise Unavailable(where, f"is too old (version {version})", advice)
    if read_only:
        raise Unavailable(where, "is read-only", "Set EVAL_POSTGRES_URL to its primary.")


_PRIVILEGES: dict[str, dict[str, tuple[str, ...]]] = {
    "storage": {
        "INSERT": ("batches", "events", "gap_bridges", "quarantine", "evaluations", "scorecards"),
        "UPDATE": ("evaluations", "scorecards", "batch_progress"),
        "DELETE": ("scorecards",),
    },
    "coordinator": {
        "INSERT": ("batches", "events", "evaluations", "scorecards"),
        "UPDATE": ("batches", "evaluations", "scorecards", "batch_progress"),
    },
}
"""What each service does to which tables, as `projections/migrations` grant it."""
_LACKING = """
SELECT current_user, format('%%s on %%s', privilege, name)
FROM unnest(%s::text[], %s::text[]) AS needed (privilege, name)
WHERE NOT has_table_privilege(name, privilege)
UNION ALL
SELECT current_user, format('TEMPORARY on database %%s', current_database())
WHERE NOT has_database_privilege(current_database(), 'TEMPORARY')
"""


async def check_privileges(url: str, service: str) -> None:
    """Raise `Unavailable` unless the role of `url` may do what the service does to the tables."""
    pairs = [(privilege, name) for privilege, names in _PRIVILEGES[service].items() for name in names]
    columns = [[*column] for column in zip(*pairs, strict=True)]
    async with await psycopg.AsyncConnection.connect(url, connect_timeout=_TIMEOUT) as connection:
        lacking = await (await connection.execute(_LACKING, columns)).fetchall()
    if lacking:
        role, first = lacking[0]
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise Unavailable(
            f"The role {role} of EVAL_POSTGRES_URL",
            f"lacks {first}{more}",
            f"Use a member of scoreline_{service}: GRANT scoreline_{service} TO {role} "
            "(docs/how-to/deploy.md).",
        )


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
            return _silent(where, _system_reason(error), "EVAL_REDIS_URL")
        case _:
            advice = "Check the host and port in EVAL_REDIS_URL."
            return Unavailable(where, "does not answer as a Redis does", advice)


async def _postgres_state(url: str) -> tuple[int, bool]:
    async with await psycopg.AsyncConnection.connect(url, connect_timeout=_TIMEOUT) as connection:
        row = await (await connection.execute(_POSTGRES_STATE)).fetchone()
    version, read_only = row or (0, True)
    return version, read_only


def _postgres_reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = str(error).lower()
    known = (reason for words, reason in _POSTGRES_REASONS.items() if words in text)
    return next(known, "connection failed")


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


def _silent(where: str, reason: str, setting: str) -> Unavailable:
    advice = f"Start it, or unset {setting} to use the embedded server."
    return Unavailable(where, f"does not answer ({reason})", advice)


def _malformed(setting: str, example: str) -> Unavailable:
    return Unavailable(setting, "is not a valid URL", f"Write it as {example}.")


def _major_minor(version: str) -> tuple[int, int]:
    major, minor, *_ = (int(part) for part in re.findall(r"\d+", f"{version}.0.0"))
    return major, minor
