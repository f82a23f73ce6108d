"""Which errors of Redis are retried, and what the others report."""

import pytest
from redis import exceptions

from eventlog.log import LogUnavailable
from eventlog.redis_errors import QuarantineDeniedError, RedisCommandError, RedisErrors, is_transient
from eventlog.redis_streams import LOG_ERRORS
from eventlog.scripts import ScriptsMissing
from taskqueue.refusals import QUEUE_ERRORS
from taskqueue.tasks import QueueUnavailable

TRANSIENT = [
    exceptions.ConnectionError("Connection closed by server."),
    exceptions.TimeoutError("Timeout reading from socket"),
    exceptions.BusyLoadingError("Redis is loading the dataset in memory"),
    exceptions.ReadOnlyError("You can't write against a read only replica."),
    exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'."),
    exceptions.ClusterDownError("Hash slot not served"),
    exceptions.TryAgainError("Multiple keys request during rehashing of slot"),
    exceptions.MasterDownError("Link with MASTER is down and replica-serve-stale-data is set to 'no'."),
    exceptions.ResponseError("BUSY Redis is busy running a script."),
    exceptions.ResponseError("MISCONF Redis is configured to save RDB snapshots"),
    exceptions.ResponseError("NOREPLICAS Not enough good replicas to write."),
    exceptions.ResponseError(
        "ERR Error running script (call to f_1): @user_script: 4: -OOM command not allowed"
    ),
    exceptions.ResponseError("append: OOM command not allowed when used memory > 'maxmemory'."),
    ConnectionResetError(),
    ScriptsMissing(),
    QuarantineDeniedError("WRONGTYPE in one of eval:{00}:fence:e"),
]
PERMANENT = [
    (
        exceptions.NoPermissionError("User executor has no permissions to run the 'evalsha' command"),
        "users.acl",
    ),
    (
        exceptions.AuthenticationError("invalid username-password pair or user is disabled."),
        "EVAL_REDIS_URL",
    ),
    (exceptions.AuthenticationError("Authentication required."), "EVAL_REDIS_URL"),
    (
        exceptions.ResponseError("WRONGTYPE Operation against a key holding the wrong kind of value"),
        "TYPE KEY",
    ),
    (exceptions.ResponseError("ERR user_script:3: attempt to index a nil value"), "same release"),
    (exceptions.ResponseError("ERR unknown command 'XADD'"), "same release"),
    (exceptions.ResponseError("MOVED 3999 127.0.0.1:6381"), "same release"),
    (exceptions.ResponseError("BUSYGROUP Consumer Group name already exists"), "same release"),
]


@pytest.mark.parametrize("error", TRANSIENT, ids=lambda error: f"{type(error).__name__} {error}"[:40])
def test_an_outage_is_transient_in_the_log_and_in_the_queue(error: Exception) -> None:
    """Both packages use one classifier, and their callers retry."""
    assert is_transient(error)
    with pytest.raises(LogUnavailable), LOG_ERRORS:
        raise error
    with pytest.raises(QueueUnavailable), QUEUE_ERRORS:
        raise error


@pytest.mark.parametrize(("error", "advice"), PERMANENT, ids=lambda each: str(each)[:40])
@pytest.mark.parametrize("errors", [LOG_ERRORS, QUEUE_ERRORS], ids=["log", "queue"])
def test_a_rejected_command_is_not_taken_for_an_outage(
    errors: RedisErrors, error: Exception, advice: str
) -> None:
    """The error carries the server's message, the script, its keys and what to do."""
    error.__notes__ = ["script append.lua, keys eval:{00}:events:e"]
    with pytest.raises(RedisCommandError) as raised, errors:
        raise error
    text = str(raised.value)
    assert str(error).rstrip(".") in text
    assert "script append.lua, keys eval:{00}:events:e" in text
    assert advice in text
    assert raised.value.__cause__ is raised.value.error is error


def test_other_exceptions_pass_through() -> None:
    """A defect, a cancellation or an error that is already classified is raised unchanged."""
    done = RedisCommandError(exceptions.ResponseError("ERR"))
    for error in (ValueError("x"), KeyboardInterrupt(), done):
        with pytest.raises(type(error)) as raised, LOG_ERRORS:
            raise error
        assert raised.value is error
