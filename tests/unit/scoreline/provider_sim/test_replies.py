"""Replies, and what a fault leaves of them."""

from collections.abc import AsyncIterator
from typing import Any

import pytest

from scoreline.provider_sim.http_messages import ConnectionAborted, HttpReply
from scoreline.provider_sim.replies import streamed_reply, whole_reply

EVENTS = [b"1", b"2", b"3"]
WHOLE = (None, "truncated", "html")


def streamed(fault: str | None) -> HttpReply:
    return streamed_reply(EVENTS, {"request-id": "r"}, fault=fault, error=b"!", seconds=0)


async def sent(reply: HttpReply) -> tuple[bytes, ConnectionAborted | None]:
    """Read a body until its end or its abort."""
    assert isinstance(reply.body, AsyncIterator)
    data = b""
    try:
        async for chunk in reply.body:
            data += chunk
    except ConnectionAborted as aborted:
        return data, aborted
    return data, None


def test_a_reply_is_sent_whole_unless_its_fault_changes_the_body():
    """Every one of them has status 200 and the given headers."""
    replies = {fault: whole_reply({"a": 1}, {"request-id": "r"}, fault=fault) for fault in WHOLE}
    assert {(each.status, each.headers["request-id"]) for each in replies.values()} == {(200, "r")}
    assert replies[None].body == b'{"a":1}'
    assert replies["truncated"].body == b'{"a'
    assert replies["html"].headers["content-type"] == "text/html; charset=utf-8"


async def test_a_reset_midway_sends_half_of_the_announced_length():
    """The connection ends with a reset."""
    reply = whole_reply({"a": 1}, {}, fault="reset_midway")
    data, aborted = await sent(reply)
    assert (reply.length, data) == (7, b'{"a')
    assert aborted is not None
    assert aborted.reset


@pytest.mark.parametrize(
    ("fault", "data", "reset"),
    [
        (None, b"123", None),
        ("stream_error", b"12!", None),
        ("stream_broken", b"12", False),
        ("reset_midway", b"12", True),
    ],
)
async def test_a_stream_ends_as_its_fault_has_it(fault, data, reset):
    """A fault comes after half of the events, rounded up."""
    received, aborted = await sent(streamed(fault))
    assert received == data
    assert (aborted and aborted.reset) is reset


@pytest.mark.parametrize("reply", [lambda: whole_reply({}, {}, fault="?"), lambda: streamed("?")])
def test_an_unknown_fault_is_an_error(reply: Any):
    """A new fault needs a case in both functions."""
    with pytest.raises(ValueError, match=r"\?"):
        reply()
