"""Calls of models: streamed or not, cancelled, and many at once."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from executor.contract import (
    Overloaded,
    RateLimited,
    Transient,
    Unreachable,
)
from executor.targets import model_calls
from providers.clients import anthropic_client
from providers.endpoint import ModelEndpoint
from tests.unit.providers.scripted import (
    BOTH,
    MESSAGE,
    REPLY,
    STREAM,
    Handler,
    Pieces,
    fault,
    question,
    replying,
    target,
)


def streaming(pieces: list[bytes], error: Exception | None = None) -> Handler:
    headers = {"content-type": "text/event-stream", "retry-after": "3"}
    return lambda request: httpx2.Response(200, headers=headers, stream=Pieces(pieces, error))


@pytest.mark.parametrize("name", BOTH)
async def test_a_stream_comes_to_the_same_answer(name):
    """The answer is the same, streamed or not."""
    whole, streamed = (
        target(name, replying(200, REPLY[name])),
        target(name, streaming(STREAM[name]), stream=True),
    )
    one, other = (await whole.call(question())).answer, (await streamed.call(question())).answer
    assert (one.output, one.usage, one.cost_usd) == (other.output, other.usage, other.cost_usd)
    await whole.aclose()
    await streamed.aclose()


async def test_a_long_answer_is_streamed_without_an_option():
    """Above the limit for non-streamed replies the request itself enables streaming."""
    bodies: list[Any] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return streaming(STREAM["anthropic"])(request)

    model = target("anthropic", handler, parameters={"max_tokens": 30_000})
    assert (await model.call(question())).answer.output == "Paris"
    assert bodies[0]["stream"] is True
    await model.aclose()


@pytest.mark.parametrize("name", BOTH)
@pytest.mark.parametrize("error_", [None, httpx2.RemoteProtocolError("peer closed connection")])
async def test_a_stream_that_breaks_off_is_no_answer(name, error_):
    """However the connection ends, the partial answer is dropped, and the error has its length."""
    got = await fault(name, streaming(STREAM[name][: 3 if name == "anthropic" else 2], error_), stream=True)
    assert (type(got), got.kind) == (Unreachable, "broken_stream")
    assert "3 characters had come, which are no answer, and what they cost is not counted" in got.message
    assert "Par" not in got.message.replace("characters", "")


@pytest.mark.parametrize(
    ("name", "piece", "class_"),
    [
        ("anthropic", b'event: error\ndata: {"error":{"type":"overloaded_error"}}\n\n', Overloaded),
        ("anthropic", b'event: error\ndata: {"error":{"type":"api_error"}}\n\n', Unreachable),
        ("openai", b'data: {"error":{"type":"server_error","message":"x"}}\n\n', Unreachable),
        ("openai", b'data: {"error":{"code":"rate_limit_exceeded","message":"x"}}\n\n', RateLimited),
        ("anthropic", b"event: message_delta\ndata: {nonsense\n\n", Transient),
        ("openai", b"data: {nonsense\n\n", Transient),
        ("openai", b"data: [1]\n\n", Transient),
    ],
)  # fmt: skip
async def test_an_error_in_the_middle_of_a_stream_is_classified_like_one_at_its_start(name, piece, class_):
    """Its type replaces the status, which was sent before."""
    got = await fault(name, streaming([*STREAM[name][:3], piece]), stream=True)
    assert type(got) is class_


async def test_cancelling_closes_the_stream():
    """A cancelled call leaves no connection open."""

    class Endless(Pieces):
        async def __aiter__(self) -> AsyncIterator[bytes]:
            for piece in self.pieces:
                yield piece
            begun.set()
            await asyncio.Event().wait()

    begun = asyncio.Event()
    body = Endless(STREAM["anthropic"][:3])
    headers = {"content-type": "text/event-stream"}
    model = target("anthropic", lambda _: httpx2.Response(200, headers=headers, stream=body), stream=True)
    task = asyncio.create_task(model.call(question()))
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert body.is_closed
    await model.aclose()


async def test_many_calls_at_once_share_one_client(monkeypatch):
    """It is created at the first call, not with the target, and only once."""
    made: list[object] = []

    def counted(access: ModelEndpoint, **more: Any) -> object:
        made.append(access)
        return anthropic_client(access, **more)

    monkeypatch.setattr(model_calls, "anthropic_client", counted)
    model = target("anthropic", replying(200, MESSAGE))
    assert made == []
    await asyncio.gather(*(model.call(question()) for _ in range(5)))
    assert len(made) == 1
    await model.aclose()
