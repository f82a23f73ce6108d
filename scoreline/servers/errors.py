"""Explanations of errors of PostgreSQL and Redis, with advice: one table for each.

PostgreSQL's errors are classified by SQLSTATE and quoted with the server's own message, which names tables
and roles. An error without a SQLSTATE comes from the driver; its message may quote parts of a URL and is
never printed.
"""

from collections.abc import Iterator

import psycopg
from redis import exceptions as redis_errors

from eventlog.log import LogUnavailable
from projections.database.errors import DatabaseUnavailable
from taskqueue.tasks import QueueUnavailable

_MIGRATE = "Run: scoreline db migrate"
_POSTGRES_STATES = {
    "42501": (
        "PostgreSQL denies this role something",
        "Connect with the role of this service (docs/how-to/deploy.md), or grant it what it lacks.",
    ),
    "28": ("PostgreSQL does not accept the login", "Correct the user and password in EVAL_POSTGRES_URL."),
    "3D000": ("There is no such database", "Create it, or correct EVAL_POSTGRES_URL."),
    "42P01": ("The database lacks a table", _MIGRATE),
    "42703": ("The database lacks a column", _MIGRATE),
    "25006": ("PostgreSQL is read-only", "Set EVAL_POSTGRES_URL to its primary."),
    "53100": ("PostgreSQL is out of disk space", "Free some, then try again."),
    "53200": ("PostgreSQL is out of memory", "Give it more, then try again."),
    "53300": ("PostgreSQL has too many connections", "Close some, or raise max_connections."),
    "53": ("PostgreSQL lacks a resource", "See its log, then try again."),
    "57014": ("PostgreSQL cancelled the statement", "Raise the role's statement_timeout, or try again."),
    "57P": ("PostgreSQL is shutting down or starting", "Try again in a moment."),
    "58": ("PostgreSQL has an error of its system", "See its log; its disk may be failing."),
    "XX": ("PostgreSQL has an internal error", "See its log; its files may be damaged."),
    "08": ("The connection to PostgreSQL broke", "No change was made in part: try again."),
}
"""By SQLSTATE, or the beginning of one: what it means, and what to do."""
_REDIS_WORDS = {
    "NOPERM": ("Redis denies this user something", "Use the ACL of deploy/redis/users.acl for it."),
    "NOAUTH": ("Redis wants a login", "Put user and password into EVAL_REDIS_URL."),
    "WRONGPASS": ("Redis does not accept the login", "Correct the user and password in EVAL_REDIS_URL."),
    "MOVED": ("This Redis is part of a cluster, which is not supported", "Use a server of its own."),
    "ASK ": ("This Redis is part of a cluster, which is not supported", "Use a server of its own."),
    "CROSSSLOT": ("This Redis is part of a cluster, which is not supported", "Use a server of its own."),
    "CLUSTERDOWN": ("This Redis is part of a cluster, which is not supported", "Use a server of its own."),
    "READONLY": ("This Redis is a read-only replica", "Set EVAL_REDIS_URL to its primary."),
    "OOM": ("Redis is full", "Raise its maxmemory; work goes on by itself then."),
    "MISCONF": ("Redis cannot write to its disk", "Free some space for it; work goes on by itself then."),
    "LOADING": ("Redis is still loading its data", "Try again in a moment."),
    "BUSY": ("Redis is busy with a script", "Try again in a moment; else see SCRIPT KILL."),
    "UNKNOWN COMMAND": ("This Redis lacks a command", "Use Redis 6.2 or newer, or Valkey."),
}


def explain(error: BaseException) -> str | None:
    """Explain a server's error in one line; None for any other error, or a bug of this program."""
    for beneath in _chain(error):
        if isinstance(beneath, psycopg.Error) and (explanation := explain_postgres(beneath)):
            return explanation
        if isinstance(beneath, redis_errors.RedisError) and (explanation := explain_redis(beneath)):
            return explanation
    match error:
        case DatabaseUnavailable():
            return "PostgreSQL went away; no change was made in part. Try again."
        case LogUnavailable() | QueueUnavailable():
            return "Redis went away; no change was made in part. Try again."
        case _:
            return None


def explain_postgres(error: psycopg.Error) -> str | None:
    """Explain an error of PostgreSQL; None for an invalid statement."""
    state = error.sqlstate or ""
    for known in (state, state[:3], state[:2]):
        if known in _POSTGRES_STATES:
            meaning, advice = _POSTGRES_STATES[known]
            return _line(meaning, error.diag.message_primary, advice)
    if not state and isinstance(error, (psycopg.OperationalError, psycopg.InterfaceError)):
        return "PostgreSQL went away, or does not answer; no change was made in part. Try again."
    return None


def explain_redis(error: redis_errors.RedisError) -> str | None:
    """Explain an error of Redis; None for an invalid command."""
    message = str(error)
    if isinstance(error, redis_errors.NoPermissionError):
        return _line(*_with(message, "NOPERM"))
    for word in _REDIS_WORDS:
        if message.upper().startswith(word):
            return _line(*_with(message, word))
    if isinstance(error, redis_errors.AuthenticationError):
        return _line(*_with(None, "WRONGPASS"))
    if isinstance(error, redis_errors.ReadOnlyError):
        return _line(*_with(None, "READONLY"))
    if isinstance(error, (redis_errors.ConnectionError, redis_errors.TimeoutError)):
        return "Redis went away, or does not answer; no change was made in part. Try again."
    return None


def _with(message: str | None, word: str) -> tuple[str, str | None, str]:
    meaning, advice = _REDIS_WORDS[word]
    return meaning, message, advice


def _line(meaning: str, message: str | None, advice: str) -> str:
    quoted = " ".join(message.split()).rstrip(".") if message else ""
    return f"{meaning} ({quoted}). {advice}" if quoted else f"{meaning}. {advice}"


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the chain of its causes."""
    seen: set[int] = set()
    beneath: BaseException | None = error
    while beneath is not None and id(beneath) not in seen:
        seen.add(id(beneath))
        yield beneath
        beneath = beneath.__cause__ or beneath.__context__
