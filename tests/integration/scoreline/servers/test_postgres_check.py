"""Which PostgreSQL is unfit for use, and the line that reports it."""

from urllib.parse import urlsplit

import psycopg
import pytest

from scoreline.servers import postgres_check
from scoreline.servers.postgres_check import check_postgres
from tests.integration.scoreline.servers.test_availability import complaint


async def test_missing_database_is_named(postgres_url: str) -> None:
    """A server without the database is not reported as unreachable."""
    url = urlsplit(postgres_url)._replace(path="/nowhere").geturl()
    assert "(no such database or role)" in await complaint(check_postgres, url)


async def test_read_only_postgres_is_refused(postgres_url: str) -> None:
    """A read-only database fails the check, not the first write."""
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as admin:
        name = urlsplit(postgres_url).path[1:].encode()
        await admin.execute(b"ALTER DATABASE %s SET default_transaction_read_only = on" % name)
    assert "is read-only" in await complaint(check_postgres, postgres_url)


async def test_old_postgres_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server below the minimum version is refused with its version."""
    monkeypatch.setattr(postgres_check, "_OLDEST_POSTGRES", 99)
    assert "is too old (version" in await complaint(check_postgres, postgres_url)
