"""What errors of PostgreSQL and Redis mean, and the text they are reported with."""

import psycopg
import pytest
from psycopg import errors
from redis import exceptions as redis_errors

from eventlog.log import LogUnavailable
from projections.database.errors import DatabaseUnavailable
from scoreline.servers.errors import explain


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("42501", "denies this role"),
        ("28P01", "does not accept the login"),
        ("3D000", "no such database"),
        ("42P01", "scoreline db migrate"),
        ("25006", "read-only"),
        ("53100", "out of disk space"),
        ("53300", "too many connections"),
        ("57014", "cancelled"),
        ("57P01", "shutting down"),
        ("08006", "broke"),
    ],
)
def test_every_state_of_postgres_has_its_meaning(state: str, words: str) -> None:
    """The cause is found beneath the error that callers catch; only a full disk is called one."""
    message = explain(errors.lookup(state)())
    assert message is not None
    assert words in message
    assert ("disk" in message) == (state == "53100")
    unavailable = DatabaseUnavailable("away")
    unavailable.__cause__ = errors.lookup(state)()
    assert explain(unavailable) == message


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (redis_errors.NoPermissionError("User executor has no permissions to run 'flushall'"), "denies"),
        (redis_errors.ResponseError("MOVED 3999 127.0.0.1:6381"), "cluster"),
        (redis_errors.ResponseError("CROSSSLOT Keys in request"), "cluster"),
        (redis_errors.ReadOnlyError("You can't write against a read only replica."), "replica"),
        (redis_errors.ResponseError("OOM command not allowed"), "full"),
        (redis_errors.ResponseError("MISCONF Redis is configured to save"), "disk"),
        (redis_errors.ResponseError("unknown command 'XAUTOCLAIM'"), "lacks a command"),
        (redis_errors.AuthenticationError("invalid"), "login"),
        (redis_errors.ConnectionError("redis://user:hunter2@x"), "went away"),
    ],
)
def test_every_error_of_redis_has_its_meaning(error: Exception, words: str) -> None:
    """The driver's own text is never repeated."""
    message = explain(error)
    assert message is not None
    assert words in message
    assert "hunter2" not in message


def test_a_mistake_of_ours_keeps_its_traceback() -> None:
    """A wrong statement or command is no server's fault."""
    assert explain(errors.lookup("42601")()) is None
    assert explain(redis_errors.ResponseError("wrong number of arguments")) is None
    assert explain(ValueError("x")) is None


def test_a_server_that_does_not_answer_is_reported_as_an_outage() -> None:
    """The error does not repeat the driver's text."""
    for away in (psycopg.OperationalError("host=db password=hunter2"), LogUnavailable("hunter2")):
        message = explain(away)
        assert message is not None
        assert "went away" in message
        assert "hunter2" not in message
