"""Errors of Redis as users of the queue get them; eventlog/redis_errors.py classifies them."""

from typing import Any

from redis.asyncio.client import Pipeline
from redis.exceptions import ResponseError

from eventlog.redis_errors import RedisErrors
from taskqueue.tasks import QueueUnavailable

QUEUE_ERRORS = RedisErrors(QueueUnavailable)
GONE = ("NOGROUP", "UNBLOCKED")


async def answers(pipe: Pipeline) -> list[Any]:
    """Run a pipeline; an error keeps its original message, which the client would otherwise prefix."""
    replies = await pipe.execute(raise_on_error=False)
    for reply in replies:
        if isinstance(reply, Exception):
            raise reply
    return replies


def means_gone(error: object) -> bool:
    """Whether an error means that a stream or its group was deleted during a blocking read."""
    return _begins(error, GONE)


def _begins(error: object, words: tuple[str, ...]) -> bool:
    return isinstance(error, ResponseError) and str(error).startswith(words)
