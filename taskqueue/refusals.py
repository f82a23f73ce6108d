"""What a refusal of Redis means to users of the queue."""

from typing import Any

from redis.asyncio.client import Pipeline
from redis.exceptions import (
    BusyLoadingError,
    ConnectionError,  # noqa: A004 - redis' own, caught below
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,  # noqa: A004 - redis' own, caught below
)

from eventlog.redis_streams import NOT_NOW
from taskqueue.tasks import QueueUnavailable

UNAVAILABLE = (ConnectionError, TimeoutError, BusyLoadingError, ReadOnlyError, OutOfMemoryError, OSError)
GONE = ("NOGROUP", "UNBLOCKED")


class translated:  # noqa: N801 - reads as a statement
    """Turn what means "not now" into `QueueUnavailable`; a refused command stays the bug it is."""

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        # A key of the wrong type that this user may not move: a coordinator moves it, within a moment.
        if isinstance(error, UNAVAILABLE) or _begins(error, (*NOT_NOW, "WRONGTYPE")):
            raise QueueUnavailable(str(error) or type(error).__name__) from error


async def answers(pipe: Pipeline) -> list[Any]:
    """Run a pipeline; an error keeps its own words, which the client would otherwise prefix."""
    replies = await pipe.execute(raise_on_error=False)
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def means_gone(error: object) -> bool:
    """Whether a stream that was waited on is there no more."""
    return _begins(error, GONE)


def _begins(error: object, words: tuple[str, ...]) -> bool:
    return isinstance(error, ResponseError) and str(error).startswith(words)
