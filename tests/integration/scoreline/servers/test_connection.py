"""Connections to PostgreSQL: each error is explained, and none of the server's own is hidden."""

from concurrent.futures.process import BrokenProcessPool

import pytest
from psycopg import DataError, InterfaceError, OperationalError, connect

from projections.database.errors import UnknownBatch
from scoreline.command_error import CommandError
from scoreline.servers.connection import connected
from tests.integration.scoreline.batch_harness import harness


async def refused(postgres_url: str, error: Exception) -> str:
    """Raise an error while connected; returns how it is explained."""
    with pytest.raises(CommandError) as caught:
        async with connected(postgres_url):
            raise error
    return str(caught.value)


async def test_a_server_that_does_not_answer_is_an_error_without_its_url() -> None:
    """The driver's message may quote a password."""
    with pytest.raises(CommandError) as caught:
        async with connected("postgresql://me:hunter2@127.0.0.1:1/scoreline"):
            pass
    assert str(caught.value) == "PostgreSQL does not answer; no change was made in part. Try again."


async def terminated(postgres_url: str) -> None:
    """Use a connection that the server has closed."""
    async with connected(postgres_url) as conn:
        with connect(postgres_url, autocommit=True) as other:
            other.execute("SELECT pg_terminate_backend(%s)", [conn.info.backend_pid])
        await conn.execute("SELECT 1")


async def test_a_broken_connection_is_distinguished_from_an_error_of_the_server(postgres_url: str) -> None:
    """A full disk is reported in the server's own words."""
    with pytest.raises(CommandError, match="PostgreSQL went away"):
        await terminated(postgres_url)
    for error in (OperationalError("No space left on device"), InterfaceError("no result")):
        with pytest.raises(type(error)) as own:
            async with connected(postgres_url):
                raise error
        assert own.value is error


async def test_other_errors_are_one_sentence_each(postgres_url: str) -> None:
    """A damaged row, an id that is no text, and a process of the command that died."""
    unreadable = UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed")
    for error, text in (
        (DataError("invalid date\n"), "A row can't be read: invalid date. Correct it by hand first."),
        (unreadable, "That is no id: it is not valid UTF-8."),
        (
            BrokenProcessPool(),
            "A process that shared the work has died; no change was made in part. Try again.",
        ),
    ):
        assert await refused(postgres_url, error) == text


async def test_an_unknown_batch_is_named_with_the_nearest_ids(redis_url: str, postgres_url: str) -> None:
    """Ids that begin with the given one come before those that merely resemble it."""
    async with harness(postgres_url, redis_url) as here:
        for batch_id in ("nightly-1", "nightly-2", "weekly-1"):
            await here.submit(batch_id, ["queued"])
    beginning = await refused(postgres_url, UnknownBatch("nightly"))
    assert beginning.startswith("There is no batch nightly. Nearest: nightly-")
    assert "weekly" not in beginning
    assert (
        await refused(postgres_url, UnknownBatch("weekli-1"))
        == "There is no batch weekli-1. Nearest: weekly-1"
    )
    assert await refused(postgres_url, UnknownBatch("zzz\x1b")) == "There is no batch zzz\\x1b."
