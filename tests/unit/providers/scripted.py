"""Models whose provider returns scripted replies."""

import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpx2
import pytest

from eventlog import payloads as p
from executor.contract import (
    CallFault,
    ExecutionEnvironment,
    TargetRequest,
)
from executor.targets.model import ModelTarget, ModelType
from providers.table import PROVIDERS

KEY = "sk-canary-0123456789abcdef"


MODELS = {"anthropic": "claude-haiku-4-5", "openai": "gpt-4o-mini", "groq": "llama-3.1-8b-instant"}


BOTH = ["anthropic", "openai"]


Handler = Callable[[httpx2.Request], httpx2.Response]


def replying(status: int, body: object, **headers: str) -> Handler:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda request: httpx2.Response(
        status, content=raw, headers={"content-type": "application/json", **names}
    )


def target(name: str, handler: Handler, **options: Any) -> ModelTarget:
    made = ModelType(PROVIDERS[name], transport=httpx2.MockTransport(handler))
    here = ExecutionEnvironment(slots=4, environ={PROVIDERS[name].key_variable: KEY})
    return made.make({"model": MODELS[name], **options}, here)


def question(**more: Any) -> TargetRequest:
    return TargetRequest("b.1", "Capital of France?", p.Case(id="c"), {}, timeout=5, **more)


async def fault(name: str, handler: Handler, **options: Any) -> CallFault:
    model = target(name, handler, **options)
    try:
        with pytest.raises(CallFault) as caught:
            await model.call(question())
    finally:
        await model.aclose()
    shown = f"{caught.value} {caught.value!r} {caught.value.message} {model!r} {model.caller!r}"
    assert KEY not in shown
    return caught.value


def error(type_: str, message: str = "") -> dict[str, Any]:
    return {"type": "error", "error": {"type": type_, "message": message}}


MESSAGE = {
    "id": "msg_1", "type": "message", "role": "assistant", "model": "claude-haiku-4-5",
    "content": [{"type": "text", "text": "Paris"}], "stop_reason": "end_turn", "stop_sequence": None,
    "usage": {"input_tokens": 1_000, "output_tokens": 100},
}  # fmt: skip


COMPLETION = {
    "id": "c1", "object": "chat.completion", "created": 1, "model": "gpt-4o-mini",
    "choices": [{"index": 0, "finish_reason": "stop", "message": {"content": "Paris"}}],
    "usage": {"prompt_tokens": 1_000, "completion_tokens": 100, "total_tokens": 1_100},
}  # fmt: skip


REPLY = {"anthropic": MESSAGE, "openai": COMPLETION, "groq": COMPLETION}


EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": [], "stop_reason": None}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "Par"}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "is"}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 100}},
    {"type": "message_stop"},
]


def chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


CHUNKS: list[Any] = [
    chunk({"role": "assistant", "content": ""}),
    chunk({"content": "Par"}),
    chunk({"content": "is"}),
    chunk({}, "stop"),
    {**chunk({}), "choices": [], "usage": COMPLETION["usage"]},
]


def sse(name: str, pieces: list[Any]) -> list[bytes]:
    if name == "anthropic":
        return [f"event: {each['type']}\ndata: {json.dumps(each)}\n\n".encode() for each in pieces]
    return [f"data: {json.dumps(each)}\n\n".encode() for each in pieces] + [b"data: [DONE]\n\n"]


STREAM = {"anthropic": sse("anthropic", EVENTS), "openai": sse("openai", CHUNKS)}


class Pieces(httpx2.AsyncByteStream):
    """A body that arrives in pieces, and may break off."""

    def __init__(self, pieces: list[bytes], error: Exception | None = None) -> None:
        self.pieces, self.error, self.is_closed = pieces, error, False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for piece in self.pieces:
            yield piece
        if self.error:
            raise self.error

    async def aclose(self) -> None:
        self.is_closed = True
