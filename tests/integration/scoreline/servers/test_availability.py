"""The error that a command reports before any work starts, when a server is unfit."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from scoreline.servers import postgres_check, redis_check
from scoreline.servers.availability import Unavailable, redact
from scoreline.servers.postgres_check import check_postgres
from scoreline.servers.redis_check import check_redis

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
    for module in (postgres_check, redis_check):
        monkeypatch.setattr(module, "TIMEOUT", 0.1)
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
