"""Models as targets, on the official SDKs, with a transport that returns scripted replies."""

import gzip
import json

import httpx2
import pytest

from eventlog import payloads as p
from eventlog.redaction import redact
from executor.contract import (
    Permanent,
    Transient,
)
from providers.limits import Headroom
from providers.table import PROVIDERS
from tests.unit.providers.scripted import (
    BOTH,
    COMPLETION,
    KEY,
    MESSAGE,
    MODELS,
    REPLY,
    STREAM,
    Pieces,
    fault,
    question,
    replying,
    target,
)


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


async def test_a_target_that_was_never_called_closes_without_error():
    """It has no client to close."""
    await target("openai", replying(200, COMPLETION)).aclose()


async def test_a_key_is_known_as_a_secret_once_a_model_is_called_with_it():
    """The key is redacted even in an answer."""
    reply = {**MESSAGE, "content": [{"type": "text", "text": f"my key is {KEY}"}]}
    model = target("anthropic", replying(200, reply))
    assert redact((await model.call(question())).answer.output) == "my key is ***"
    await model.aclose()
