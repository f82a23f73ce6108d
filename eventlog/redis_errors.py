"""The one classification of Redis errors: transient ones are retried, permanent ones surface.

transient: the connection is lost or times out; the server loads, is full, read-only, out of disk or busy; a
cluster or replica is not ready; another service must act first (`QuarantineDeniedError`, `ScriptsMissing`).
Commands are idempotent, so callers repeat them.

permanent: everything else, as NOPERM, NOAUTH, WRONGPASS, WRONGTYPE, MOVED, an unknown command, a script's
error. A repetition would fail in the same way: `RedisCommandError` names the error, script and keys, and
what to do about it.
"""

import re
from contextlib import AbstractContextManager

from redis.exceptions import (
    AuthenticationError,
    AuthorizationError,
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,  # noqa: A004 - redis' own
    MasterDownError,
    NoPermissionError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,  # noqa: A004 - redis' own
    TryAgainError,
)

_TRANSIENT = (
    BusyLoadingError,
    ClusterDownError,
    ConnectionError,
    MasterDownError,
    OutOfMemoryError,
    ReadOnlyError,
    TimeoutError,
    TryAgainError,
    OSError,
)
_DENIED = (AuthenticationError, AuthorizationError)
"""Subclasses of redis' ConnectionError that no repetition cures."""
_TRANSIENT_CODE = re.compile(
    r"(?:^|^\w+: |user_script:\s?\d+: -?)"
    r"(?:BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOREPLICAS|OOM|READONLY|TRYAGAIN)\b"
)
"""Codes at the beginning, behind the name of our script, or behind the position that older servers add."""
_ADVICE = {
    "NOPERM": "Give its user the rights of deploy/redis/users.acl.",
    "NOAUTH": "Put user and password into EVAL_REDIS_URL.",
    "WRONGTYPE": "See `redis-cli TYPE KEY`, then rename or delete the key: `redis-cli RENAME KEY OTHER`.",
}
_DEFECT = "Run the same release in every process; if the error stays, report it with this line."


class RedisCommandError(ResponseError):
    """Redis rejected a command for good; `error` is what it returned."""

    def __init__(self, error: BaseException) -> None:
        advice = _ADVICE.get(_code(error), _DEFECT)
        super().__init__(f"Redis rejected a command: {_described(error)}. {advice}")
        self.error = error


class QuarantineDeniedError(ConnectionError):
    """A key has the wrong type and this user may not move it: a coordinator or storage worker does."""


def is_transient(error: BaseException | None) -> bool:
    """Whether repeating the command can succeed without a change to the deployment."""
    if _is_denied(error):
        return False
    if isinstance(error, _TRANSIENT):
        return True
    return isinstance(error, ResponseError) and bool(_TRANSIENT_CODE.search(str(error)))


class RedisErrors(AbstractContextManager[object, None]):
    """Turns a block's transient errors into `unavailable`, permanent ones into `RedisCommandError`."""

    __slots__ = ("_unavailable",)

    def __init__(self, unavailable: type[Exception]) -> None:
        self._unavailable = unavailable

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        if is_transient(error):
            raise self._unavailable(str(error) or type(error).__name__) from error
        if (isinstance(error, ResponseError) or _is_denied(error)) and not isinstance(
            error, RedisCommandError
        ):
            raise RedisCommandError(error) from error


def _is_denied(error: BaseException | None) -> bool:
    """Whether a login was denied; the client raises a plain ConnectionError from that."""
    return isinstance(error, _DENIED) or (error is not None and isinstance(error.__cause__, _DENIED))


def _described(error: BaseException) -> str:
    notes = "; ".join(getattr(error, "__notes__", ()))
    text = str(error).rstrip(".") or type(error).__name__
    return f"{text} ({notes})" if notes else text


def _code(error: BaseException) -> str:
    if isinstance(error, NoPermissionError):
        return "NOPERM"
    return "NOAUTH" if _is_denied(error) else str(error).partition(" ")[0]
