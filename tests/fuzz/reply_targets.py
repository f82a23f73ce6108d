"""Replies under fuzzing: of models, whole and streamed, of provider batches, of HTTP targets."""

import asyncio
from collections.abc import AsyncIterator, Callable

from coordinator.provider_batches import anthropic_batches, result_reader
from coordinator.provider_batches.result_file import BrokenResultFile, read_results
from domain.batch_spec import TargetSpec
from eventlog.codec import encode
from eventlog.payloads import Score
from executor.contract import CallFault, Permanent
from executor.evaluators.llm_verdict import Scale, read_verdict
from executor.outcome import close_after
from executor.targets import http_replies
from executor.targets.answers import reply
from providers import rate_limit_headers
from providers.endpoint import ModelEndpoint
from providers.errors import classify_error, parse_error
from providers.json_reader import UnreadableJson, read_json
from providers.requests import InvalidReply, answer_of
from providers.streams import gathering
from providers.table import PROVIDERS, Sdk
from tests.builders import event
from tests.fuzz import inputs
from tests.fuzz.target import NOW, FuzzTarget

MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [
        {"type": "text", "text": '{"score": 1, "reason": "so"}'},
        {"type": "tool_use", "input": {"score": 1}},
    ],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": None},
}
CHAT = {
    "choices": [
        {"finish_reason": "stop", "message": {"role": "assistant", "content": "{}", "refusal": None}}
    ],
    "usage": {"prompt_tokens": 3, "completion_tokens": 4},
}
MESSAGE_EVENTS = [
    {"type": "message_start", "message": {**MESSAGE, "content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "4"}},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 1}},
    {"type": "message_stop"},
]
CHAT_EVENTS = [
    {"choices": [{"index": 0, "delta": {"content": "4"}, "finish_reason": None}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 1}},
]
RESULT = b"".join(
    inputs.packed({"custom_id": f"r{number}", "result": result}) + b"\n"
    for number, result in enumerate(
        (
            {"type": "succeeded", "message": MESSAGE},
            {
                "type": "errored",
                "error": {"type": "error", "error": {"type": "api_error", "message": "no"}},
            },
            {"type": "expired"},
        )
    )
)
DATES = (b"5", b"0.5", b"6m0s", b"20ms", b"2026-01-01T00:00:30Z", b"Thu, 01 Jan 2026 00:00:30 GMT")


def _reply(body: bytes) -> None:
    """Read a reply as an answer, as a refusal and as a verdict."""
    try:
        message = read_json(body)
    except UnreadableJson:
        return
    access = ModelEndpoint(PROVIDERS["openai"], "gpt", "http://127.0.0.1/v1", "key")
    for status in (200, 400, 404, 429, 500):
        failure = classify_error(parse_error(status, message), access)
        _closed(Permanent(failure.kind, failure.message))
    try:
        answered = answer_of(message)
    except InvalidReply as error:
        _closed(Permanent("invalid_response", str(error)))
        return
    try:
        reply(answered.output, latency_ms=1.0)
        verdict = read_verdict(message, Scale(0.0, 1.0, 0.5))
        Score(evaluator="judge", score=verdict.score, passed=verdict.passed, reason=verdict.reason)
    except CallFault as fault:
        _closed(fault)


def _closed(fault: CallFault) -> None:
    """Close an attempt after a fault, and write its event."""
    encode(event(close_after(fault, retries=1, attempt=1, now=NOW, jitter=0.5), sequence=3))


def _stream(sdk: Sdk) -> Callable[[bytes], None]:
    def exercise(body: bytes) -> None:
        try:
            pieces = read_json(body)
        except UnreadableJson:
            return
        gathered = gathering(sdk)
        try:
            for piece in pieces if isinstance(pieces, list) else [pieces]:
                if isinstance(piece, dict):
                    gathered.add(piece)
            assert isinstance(gathered.text, str)
            assert isinstance(gathered.is_whole, bool)
            answer_of(gathered.whole())
        except InvalidReply as error:
            _closed(Permanent("invalid_response", str(error)))

    return exercise


def _batch_results(body: bytes) -> None:
    async def pieces() -> AsyncIterator[bytes]:
        for at in range(0, len(body), 37):
            yield body[at : at + 37]

    async def read() -> None:
        target = TargetSpec("anthropic", "claude", {"model": "claude"})
        async for line in read_results(pieces(), provider_id="batch", longest=100_000):
            result_reader.read(anthropic_batches._result(line), target, None)

    try:
        asyncio.run(read())
    except BrokenResultFile:
        return


def _http_reply(body: bytes) -> None:
    text = body.decode(errors="replace")
    for paths in (
        http_replies.ReplyPaths(),
        http_replies.ReplyPaths("a.0", "usage", "cost"),
        http_replies.ReplyPaths("text"),
    ):
        try:
            http_replies.answer_of(text, paths, latency_ms=1.0)
        except CallFault as fault:
            _closed(fault)
    for status in (302, 404, 408, 429, 503):
        refused = http_replies.fault_of(status, {"retry-after": text, "date": text}, text, now=NOW)
        assert refused is not None
        _closed(refused)


def _headers(body: bytes) -> None:
    text = body.decode("latin-1")
    for headers in (rate_limit_headers.ANTHROPIC, rate_limit_headers.OPENAI, rate_limit_headers.CEREBRAS):
        for name in (*headers.requests, *headers.tokens):
            found = {name.limit: "10", name.remaining: "0", name.reset: text, "date": text}
            rate_limit_headers.wait_for(rate_limit_headers.limits_of(headers, found, now=NOW))
            rate_limit_headers.limits_of(
                headers, {**found, name.limit: text, name.remaining: text}, now=NOW
            )
    for header in ("retry-after", "retry-after-ms"):
        rate_limit_headers.retry_after({header: text, "date": text}, now=NOW)
    http_replies.text_encoding(text)


REPLY_TARGETS = (
    FuzzTarget(
        "model reply",
        inputs.documents(MESSAGE, CHAT, {"error": {"type": "api_error", "message": "no"}}),
        _reply,
    ),
    FuzzTarget("model stream anthropic", inputs.documents(MESSAGE_EVENTS), _stream(Sdk.ANTHROPIC)),
    FuzzTarget("model stream openai", inputs.documents(CHAT_EVENTS), _stream(Sdk.OPENAI)),
    FuzzTarget("provider batch results", inputs.texts(RESULT), _batch_results),
    FuzzTarget(
        "http reply",
        inputs.documents({"a": ["4"], "usage": {"input": 1}, "cost": 0.5, "text": "4"}),
        _http_reply,
    ),
    FuzzTarget("reply headers", inputs.texts(*DATES), _headers),
)
