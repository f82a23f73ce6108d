"""The error that a command reports before any work starts, when a server is unfit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import psycopg
import pytest
from redis.asyncio import Redis

from scoreline.servers import availability as preflight
from scoreline.servers.availability import Unavailable, check_postgres, check_redis, redact

Check = Callable[[str], Awaitable[None]]


async def complaint(check: Check, url: str) -> str:
    """The one line that the check raises."""
    with pytest.raises(Unavailable) as caught:
        await check(url)
    message = str(caught.value)
    assert "\n" not in message
    return message


@asynccontextmanager
async def listener(reply: bytes | None) -> AsyncIterator[int]:
    """The port of a server that sends every client the same reply, or (None) never answers."""
    writers = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        while reply is not None and await reader.read(1000):
            writer.write(reply)

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
        for writer in writers:
            writer.close()


def info(version: str, role: str = "master") -> bytes:
    body = f"redis_version:{version}\r\nrole:{role}\r\n"
    return f"${len(body)}\r\n{body}\r\n".encode()


async def test_good_servers_pass(redis_url: str, postgres_url: str) -> None:
    """Nothing is raised where both servers are fit for use."""
    await check_redis(redis_url)
    await check_postgres(postgres_url)


async def test_a_refused_connection_is_reported_with_the_remedy() -> None:
    """Each missing server has its own error, with the remedy."""
    assert await complaint(check_redis, "redis://127.0.0.1:1") == (
        "Redis at redis://127.0.0.1:1 does not answer (connection refused). "
        "Start it, or unset EVAL_REDIS_URL to use the embedded server."
    )
    assert await complaint(check_postgres, "postgresql://127.0.0.1:1/x") == (
        "PostgreSQL at postgresql://127.0.0.1:1/x does not answer (connection refused). "
        "Start it, or unset EVAL_POSTGRES_URL to use the embedded server."
    )


async def test_missing_sockets_are_named_as_such() -> None:
    """A path where no server listens is not called a refusal."""
    assert "(no such socket)" in await complaint(check_redis, "unix:///nowhere/valkey.sock")
    assert "(no such socket)" in await complaint(check_postgres, "postgresql:///x?host=/nowhere")


@pytest.mark.parametrize(("check", "scheme"), [(check_redis, "redis"), (check_postgres, "postgresql")])
async def test_a_server_that_never_answers_times_out(
    check: Check, scheme: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host that accepts the connection and sends nothing delays the check only briefly."""
    monkeypatch.setattr(preflight, "_TIMEOUT", 0.1)
    async with listener(reply=None) as port:
        message = await complaint(check, f"{scheme}://127.0.0.1:{port}/0")
    assert "(no answer in time)" in message


@pytest.mark.parametrize(
    ("check", "url"),
    [
        (check_redis, "http://secret@host"),
        (check_redis, "redis://:secret@host:port"),
        (check_redis, ""),
        (check_postgres, "mysql://u:secret@host/x"),
        (check_postgres, "postgresql://u:secret%zz@host/x"),
        (check_postgres, "postgresql://u:secret@host/x?colour=red"),
        (check_postgres, "host=x password=secret"),
    ],
)
async def test_bad_urls_are_explained_without_being_quoted(check: Check, url: str) -> None:
    """A URL that cannot be parsed cannot be redacted either, so the error has an example instead."""
    message = await complaint(check, url)
    assert "is not a valid URL. Write it as" in message
    assert "secret" not in message


@pytest.mark.parametrize(
    "url",
    [
        "redis://user:secret@host:1/0",
        "redis://:se/secret@host",
        "postgresql://u:p@secret@host/x",
        "postgresql://u@host/x?password=secret&port=1",
        "postgresql://u@host/x?sslpassword=secret",
    ],
)
def test_passwords_are_redacted_however_they_are_written(url: str) -> None:
    """No form of password is printed, escaped well or badly, and the host stays readable."""
    assert "secret" not in redact(url)
    assert "host" in redact(url)


async def test_a_wrong_login_is_not_reported_as_an_outage(redis_url: str) -> None:
    """The error names refused credentials as the reason, and never prints them."""
    async with Redis.from_url(redis_url) as client:
        await client.acl_setuser("guest", enabled=True, passwords=["+right"], commands=["+@all"])
        try:
            message = await complaint(check_redis, f"{redis_url}?username=guest&password=wrong")
        finally:
            await client.acl_deluser("guest")
    assert "does not accept the login" in message
    assert "wrong" not in message


async def test_user_without_info_gets_the_right_to_grant(redis_url: str) -> None:
    """The error names the right that the login lacks."""
    async with Redis.from_url(redis_url) as client:
        await client.acl_setuser("guest", enabled=True, passwords=["+right"], commands=["-info"])
        try:
            message = await complaint(check_redis, f"{redis_url}?username=guest&password=right")
        finally:
            await client.acl_deluser("guest")
    assert "Grant it +info" in message


async def test_missing_database_is_named(postgres_url: str) -> None:
    """A server without the database is not reported as unreachable."""
    url = urlsplit(postgres_url)._replace(path="/nowhere").geturl()
    assert "(no such database or role)" in await complaint(check_postgres, url)


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (info("5.0.14"), "is too old (version 5.0.14)"),
        (info("6.0.9"), "is too old (version 6.0.9)"),
        (info("7.2.4", role="slave"), "is a read-only replica"),
        (b"-LOADING the dataset\r\n", "is still loading its data"),
        (b"-NOAUTH Authentication required.\r\n", "does not accept the login"),
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "does not answer as a Redis does"),
    ],
)
async def test_unfit_redis_is_distinguished(reply: bytes, problem: str) -> None:
    """Too old, a replica, loading, locked or not Redis at all: each has its own message."""
    async with listener(reply) as port:
        assert problem in await complaint(check_redis, f"redis://127.0.0.1:{port}")


async def test_read_only_postgres_is_refused(postgres_url: str) -> None:
    """A read-only database fails the check, not the first write."""
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as admin:
        name = urlsplit(postgres_url).path[1:].encode()
        await admin.execute(b"ALTER DATABASE %s SET default_transaction_read_only = on" % name)
    assert "is read-only" in await complaint(check_postgres, postgres_url)


async def test_old_postgres_is_refused(postgres_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server below the minimum version is refused with its version."""
    monkeypatch.setattr(preflight, "_OLDEST_POSTGRES", 99)
    assert "is too old (version" in await complaint(check_postgres, postgres_url)
