"""Checks that PostgreSQL is reachable, supported, and grants what a service needs."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import psycopg
from psycopg import AsyncConnection

from projections.database.connection import Connection
from scoreline.servers.availability import TIMEOUT, Unavailable, malformed, redact, silent

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


async def check_postgres(url: str) -> None:
    """Raise `Unavailable` unless a writable PostgreSQL of a known version answers at `url`."""
    async with usable_postgres(url):
        return


@asynccontextmanager
async def usable_postgres(url: str) -> AsyncIterator[Connection]:
    """Yield a checked connection in autocommit; raises `Unavailable`."""
    with _explained(url):
        async with asyncio.timeout(TIMEOUT):
            connection = await AsyncConnection.connect(url, connect_timeout=TIMEOUT, autocommit=True)
    async with connection:
        with _explained(url):
            async with asyncio.timeout(TIMEOUT):
                state = await (await connection.execute(_POSTGRES_STATE)).fetchone()
        _require_supported(url, *(state or (0, True)))
        yield connection


@contextmanager
def _explained(url: str) -> Iterator[None]:
    bad_url = malformed("EVAL_POSTGRES_URL", "postgresql://user:password@host:5432/database")
    if not url.startswith(("postgresql://", "postgres://")):
        raise bad_url
    try:
        yield
    except (psycopg.ProgrammingError, UnicodeError):
        raise bad_url from None
    except (psycopg.Error, OSError) as error:
        raise silent(_place(url), _postgres_reason(error), "EVAL_POSTGRES_URL") from None


def _require_supported(url: str, version: int, read_only: bool) -> None:  # noqa: FBT001 - a row
    if version < _OLDEST_POSTGRES:
        advice = f"Use PostgreSQL {_OLDEST_POSTGRES} or newer."
        raise Unavailable(_place(url), f"is too old (version {version})", advice)
    if read_only:
        raise Unavailable(_place(url), "is read-only", "Set EVAL_POSTGRES_URL to its primary.")


def _place(url: str) -> str:
    return f"PostgreSQL at {redact(url)}"


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


async def check_privileges(connection: Connection, service: str) -> None:
    """Raise `Unavailable` unless the role may do what the service does to the tables."""
    pairs = [(privilege, name) for privilege, names in _PRIVILEGES[service].items() for name in names]
    columns = [[*column] for column in zip(*pairs, strict=True)]
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


def _postgres_reason(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return "no answer in time"
    text = str(error).lower()
    known = (reason for words, reason in _POSTGRES_REASONS.items() if words in text)
    return next(known, "connection failed")
