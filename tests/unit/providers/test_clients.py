"""Models as targets, on the official SDKs, with a transport that returns scripted replies."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx2
import pytest

from eventlog import payloads as p
from eventlog.redaction import redact
from executor.contract import (
    CallFault,
    ExecutionEnvironment,
    Permanent,
    RateLimited,
    TargetRequest,
    Transient,
    Unreachable,
)
from executor.targets import model_calls
from executor.targets.model import ModelTarget, ModelType
from providers.clients import anthropic_client
from providers.endpoint import ModelEndpoint
from providers.limits import Headroom
from providers.table import PROVIDERS

KEY = "sk-canary-0123456789abcdef"
MODELS = {"anthropic": "claude-haiku-4-5", "openai": "gpt-4o-mini", "groq": "llama-3.1-8b-instant"}
BOTH = ["anthropic", "openai"]

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


def _chunk(delta: dict[str, str], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m", "choices": [choice]}


CHUNKS: list[Any] = [
    _chunk({"role": "assistant", "content": ""}),
    _chunk({"content": "Par"}),
    _chunk({"content": "is"}),
    _chunk({}, "stop"),
    {**_chunk({}), "choices": [], "usage": COMPLETION["usage"]},
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


Handler = Callable[[httpx2.Request], httpx2.Response]


def streaming(pieces: list[bytes], error: Exception | None = None) -> Handler:
    headers = {"content-type": "text/event-stream", "retry-after": "3"}
    return lambda request: httpx2.Response(200, headers=headers, stream=Pieces(pieces, error))


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


@pytest.mark.parametrize("name", MODELS)
async def test_an_answer_has_its_text_and_its_cost(name):
    """Text, tokens, dollars and latency are in the answer."""
    model = target(name, replying(200, REPLY[name]), prices={"input": 10, "output": 100})
    answer = (await model.call(question())).answer
    assert (answer.output, answer.usage) == ("Paris", p.TokenUsage(1_000, 100))
    assert answer.cost_usd == pytest.approx(0.02)
    assert answer.latency_ms > 0
    await model.aclose()


@pytest.mark.parametrize("name", BOTH)
async def test_prices_of_well_known_models_are_built_in(name):
    """A target without the option `prices` has a cost."""
    model = target(name, replying(200, REPLY[name]))
    assert (await model.call(question())).answer.cost_usd > 0
    await model.aclose()


@pytest.mark.parametrize("name", MODELS)
async def test_the_key_the_conversation_and_every_parameter_reach_the_provider(name):
    """There is one request, without the SDK's own retries; unknown parameters are passed on."""
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return replying(200, REPLY[name])(request)

    model = target(
        name, handler, system="Be brief.", parameters={"top_k": 3, "max_tokens": 7}, headers={"X-Team": "a"}
    )
    await model.call(question(history=(("Hi", "Hello"),)))
    await model.aclose()
    [request] = seen
    body = json.loads(request.content)
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.headers["x-team"] == "a"
    assert "openai-organization" not in request.headers
    assert str(request.url).startswith(PROVIDERS[name].base_url)
    assert (body["top_k"], body["max_tokens"]) == (3, 7)
    turns = [(each["role"], each["content"]) for each in body["messages"]]
    system = [] if name == "anthropic" else [("system", "Be brief.")]
    assert turns == [*system, ("user", "Hi"), ("assistant", "Hello"), ("user", "Capital of France?")]


async def test_the_openai_organization_is_sent_only_to_openai(monkeypatch):
    """The organization that OpenAI's SDK finds in the environment is not sent to other providers."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    seen: list[httpx2.Request] = []

    def handler(request: httpx2.Request) -> httpx2.Response:
        seen.append(request)
        return replying(200, COMPLETION)(request)

    for name in ("groq", "openai"):
        model = target(name, handler)
        await model.call(question())
        await model.aclose()
    assert [request.headers.get("openai-organization") for request in seen] == [None, "org-1"]


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


@pytest.mark.parametrize("stream", [False, True])
async def test_limits_in_headers_are_returned_with_the_reply(stream):
    """Lanes learn from every answer, streamed or not."""
    headers = {
        "content-type": "text/event-stream" if stream else "application/json",
        "anthropic-ratelimit-requests-limit": "50",
        "anthropic-ratelimit-requests-remaining": "49",
    }

    def handler(request: httpx2.Request) -> httpx2.Response:
        if stream:
            return httpx2.Response(200, headers=headers, stream=Pieces(STREAM["anthropic"]))
        return httpx2.Response(200, headers=headers, json=MESSAGE)

    model = target("anthropic", handler, stream=stream)
    limits = (await model.call(question())).limits
    assert limits is not None
    assert limits.requests == Headroom(50, 49)
    await model.aclose()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", BOTH)
async def test_a_compressed_reply_without_its_end_is_a_transient_error(name, stream):
    """The missing bytes may have been a part of the answer."""
    events = b"".join(STREAM[name][:-1])  # the SDK of OpenAI reads nothing after its last event
    body = gzip.compress(events if stream else json.dumps(REPLY[name]).encode())[:-1]
    kind = "text/event-stream" if stream else "application/json"
    headers = {"content-type": kind, "content-encoding": "gzip", "content-length": str(len(body))}
    got = await fault(
        name, lambda _: httpx2.Response(200, headers=headers, stream=Pieces([body])), stream=stream
    )
    assert (type(got), got.kind) == (Transient, "invalid_response")
    assert "end marker" in got.message


def error(type_: str, message: str = "") -> dict[str, Any]:
    return {"type": "error", "error": {"type": type_, "message": message}}


@pytest.mark.parametrize(
    ("name", "status", "body", "kind", "reported"),
    [
        (
            "anthropic",
            401,
            error("authentication_error", f"bad {KEY}"),
            "authentication",
            "ANTHROPIC_API_KEY",
        ),
        ("openai", 401, error("x", f"Incorrect API key {KEY}"), "authentication", "OPENAI_API_KEY"),
        ("anthropic", 404, error("not_found_error"), "model_not_found", "no model 'claude-haiku-4-5'"),
        ("openai", 404, error("x"), "model_not_found", "no model 'gpt-4o-mini'"),
        ("anthropic", 400, error("x", "prompt is too long: 9 > 8"), "prompt_too_long", "shorten it"),
        ("openai", 400, {"error": {"code": "context_length_exceeded"}}, "prompt_too_long", "shorten it"),
        ("openai", 422, error("x", "temperature"), "invalid_request", "temperature"),
        ("anthropic", 413, b"", "prompt_too_long", "shorten it"),
    ],
)
async def test_a_permanent_error_has_the_remedy(name, status, body, kind, reported):
    """A wrong key, a wrong model and a long prompt fail at once."""
    for stream in (False, True):
        got = await fault(name, replying(status, body), stream=stream)
        assert (type(got), got.kind) == (Permanent, kind)
        assert reported in got.message


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", BOTH)
async def test_a_rate_limit_carries_its_retry_after_and_limits(name, stream):
    """Retry-After and the limits in headers are fields of the error, and no second call is made here."""
    calls = 0

    def handler(request: httpx2.Request) -> httpx2.Response:
        nonlocal calls
        calls += 1
        headers = {"retry-after": "7", "x-ratelimit-limit-requests": "60"}
        headers |= {"anthropic-ratelimit-requests-limit": "60"}
        return httpx2.Response(429, headers=headers, json=error("rate_limit_error"))

    got = await fault(name, handler, stream=stream)
    assert isinstance(got, RateLimited)
    assert got.retry_after == timedelta(seconds=7)
    assert got.limits is not None
    assert got.limits.requests.limit == 60
    assert calls == 1


async def test_without_retry_after_the_reset_of_an_exhausted_limit_is_the_wait():
    """The reset time of the exhausted limit becomes `retry_after`."""
    headers = {"x_ratelimit_remaining_tokens": "0", "x_ratelimit_reset_tokens": "6m0s"}
    got = await fault("openai", replying(429, error("tokens"), **headers))
    assert isinstance(got, RateLimited)
    assert got.retry_after == timedelta(minutes=6)


@pytest.mark.parametrize(
    ("status", "class_"), [(529, RateLimited), (500, Unreachable), (503, Unreachable), (408, Unreachable)]
)
@pytest.mark.parametrize("name", BOTH)
async def test_overload_is_a_rate_limit_and_breakage_counts_against_the_lane(name, status, class_):
    """529 is a rate limit; other 5xx and 408 are failures that may open the breaker."""
    assert type(await fault(name, replying(status, error("x")))) is class_


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    "raised", [httpx2.ConnectError("no"), httpx2.ReadError("reset"), httpx2.ConnectTimeout("t")]
)
@pytest.mark.parametrize("name", BOTH)
async def test_a_failed_connection_is_unreachable(name, raised, stream):
    """A refused, reset or timed-out connection counts against the lane."""

    def handler(request: httpx2.Request) -> httpx2.Response:
        raised.request = request
        raise raised

    got = await fault(name, handler, stream=stream)
    assert (type(got), got.kind) == (Unreachable, "connection")
    assert type(raised).__name__ in got.message


@pytest.mark.parametrize("name", BOTH)
async def test_a_slow_answer_does_not_count_against_the_lane(name):
    """A read time-out is only a transient error."""

    def handler(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ReadTimeout("slow", request=request)

    got = await fault(name, handler)
    assert (type(got), got.kind) == (Transient, "timeout")


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>gateway</html>", b"[]", b"{}", b'"Paris"', b"\xff\xfe", b'{"content": "Paris"}', b"{"],
)
@pytest.mark.parametrize("name", BOTH)
async def test_an_invalid_reply_is_never_an_answer(name, body):
    """It is a transient error."""
    got = await fault(name, replying(200, body))
    assert (type(got), got.kind) == (Transient, "invalid_response")


@pytest.mark.parametrize("name", BOTH)
async def test_an_invalid_reply_in_place_of_a_stream_is_no_answer(name):
    """A gateway's page lacks the final event of a stream."""
    got = await fault(name, replying(200, b"<html>gateway</html>", content_type="text/html"), stream=True)
    assert isinstance(got, Transient)


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
        ("anthropic", b'event: error\ndata: {"error":{"type":"overloaded_error"}}\n\n', RateLimited),
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


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("anthropic", {**MESSAGE, "content": [{"type": "text", "text": "I…"}], "stop_reason": "refusal"}),
        ("openai", {"choices": [{"finish_reason": "content_filter", "message": {"content": "I…"}}]}),
    ],
)
async def test_an_answer_stopped_by_a_filter_is_no_answer(name, body):
    """It is a permanent error, and the partial answer is not scored."""
    got = await fault(name, replying(200, body))
    assert (type(got), got.kind) == (Permanent, "content_filter")


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


async def test_a_target_that_was_never_called_closes_without_error():
    """It has no client to close."""
    await target("openai", replying(200, COMPLETION)).aclose()


async def test_a_key_is_known_as_a_secret_once_a_model_is_called_with_it():
    """The key is redacted even in an answer."""
    reply = {**MESSAGE, "content": [{"type": "text", "text": f"my key is {KEY}"}]}
    model = target("anthropic", replying(200, reply))
    assert redact((await model.call(question())).answer.output) == "my key is ***"
    await model.aclose()
