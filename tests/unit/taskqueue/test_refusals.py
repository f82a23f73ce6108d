"""Errors of Redis in pipelines and blocking reads of the queue."""

from types import SimpleNamespace
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisUnavailable
from redis.exceptions import ResponseError

from taskqueue.refusals import answers, means_gone


def pipeline(*replies: object) -> Any:
    """Make a pipeline that returns these replies, and does not raise by itself."""

    async def execute(*, raise_on_error: bool) -> list[object]:
        assert not raise_on_error
        return list(replies)

    return SimpleNamespace(execute=execute)


async def test_the_first_error_of_a_pipeline_keeps_its_message():
    """Redis errors are classified by their first word, which a prefix of the client would hide."""
    error = ResponseError("NOGROUP No such key")
    with pytest.raises(ResponseError) as raised:
        await answers(pipeline(1, error, ResponseError("ERR later")))
    assert raised.value is error


async def test_replies_without_an_error_are_returned_in_order():
    """A nil reply is no error."""
    assert await answers(pipeline(1, None, b"x")) == [1, None, b"x"]


@pytest.mark.parametrize(
    ("error", "gone"),
    [
        (ResponseError("NOGROUP No such key 'eval:tasks:{b}'"), True),
        (ResponseError("UNBLOCKED the stream key no longer exists"), True),
        (ResponseError("ERR a text with NOGROUP inside"), False),
        (RedisUnavailable("NOGROUP"), False),
        ("NOGROUP", False),
    ],
)
def test_only_a_deleted_stream_or_group_means_gone(error, gone):
    """An outage, or a reply that is a text, does not."""
    assert means_gone(error) == gone
