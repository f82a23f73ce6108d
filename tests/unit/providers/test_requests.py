"""Requests to providers and their replies as plain data: bodies, headers, errors."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from pydantic import JsonValue

from eventlog.payloads import MAX_TEXT, TokenUsage
from providers.endpoint import endpoint_of
from providers.errors import ErrorClass, classify_error, parse_error
from providers.requests import InvalidReply, answer_of, must_stream, request_of
from providers.streams import MAX_BLOCKS, AnswerTooLong, gathering
from providers.table import Sdk
from tests.redaction.trial import knowing

KEY = "sk-canary-0123456789abcdef"
NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)
ANTHROPIC_ACCESS = endpoint_of("anthropic", {"model": "claude-x"}, {"ANTHROPIC_API_KEY": KEY})
OPENAI_ACCESS = endpoint_of("openai", {"model": "gpt-x"}, {"OPENAI_API_KEY": KEY})

MESSAGE = {
    "content": [
        {"type": "thinking", "thinking": "hm"},
        {"type": "text", "text": "Pa"},
        {"type": "text", "text": "ris"},
    ],
    "stop_reason": "end_turn",
    "usage": {
        "input_tokens": 10,
        "output_tokens": 2,
        "cache_read_input_tokens": 5,
        "cache_creation_input_tokens": None,
    },
}
COMPLETION = {
    "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": "Paris"}}],
    "usage": {"prompt_tokens": 10, "completion_tokens": 2},
}


def test_a_message_request_has_all_its_parts_in_order():
    """Examples come first, then the conversation so far, then the prompt; max_tokens has a default."""
    options: dict[str, JsonValue] = {
        "model": "claude-x",
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}],
        "parameters": {"temperature": 0},
    }
    assert request_of("anthropic", options, "now?", [("c", "d")]) == {
        "model": "claude-x",
        "max_tokens": 1_024,
        "temperature": 0,
        "system": "Be brief.",
        "messages": [
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
            {"role": "assistant", "content": "d"},
            {"role": "user", "content": "now?"},
        ],
    }


def test_a_chat_request_begins_with_the_system_prompt():
    """In Chat Completions the system prompt is a message."""
    assert request_of("groq", {"model": "m", "system": "s", "parameters": {"max_tokens": 9}}, "p") == {
        "model": "m",
        "max_tokens": 9,
        "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "p"}],
    }


def test_reasoning_models_get_max_completion_tokens():
    """OpenAI's newer models refuse `max_tokens`, so the client translates the parameter."""
    params = request_of("openai", {"model": "gpt-5-mini", "parameters": {"max_tokens": 9}}, "p")
    assert params["max_completion_tokens"] == 9
    assert "max_tokens" not in params


@pytest.mark.parametrize(("limit", "streamed"), [(1_024, False), (21_333, False), (21_334, True)])
def test_an_answer_that_may_take_minutes_is_streamed(limit, streamed):
    """Above the SDK's limit for a non-streamed reply, the client streams without an option."""
    params = request_of("anthropic", {"model": "m", "parameters": {"max_tokens": limit}}, "p")
    assert must_stream(params) is streamed


def test_a_message_is_its_texts_its_tokens_and_why_it_ended():
    """Thinking blocks are no part of the answer; tokens read from the cache count as input."""
    assert answer_of(MESSAGE) == ("Paris", TokenUsage(15, 2), "end_turn")


def test_a_completion_is_parsed_to_the_same_answer():
    """OpenAI's format yields the same answer."""
    assert answer_of(COMPLETION) == ("Paris", TokenUsage(10, 2), "stop")


def test_an_empty_answer_and_a_refusal_are_answers():
    """The model's own refusal is an answer; a filter's is not."""
    assert answer_of({**MESSAGE, "content": []}).output == ""
    refusal = {"content": None, "refusal": "I won't."}
    assert answer_of({"choices": [{"finish_reason": "stop", "message": refusal}]}).output == "I won't."
    assert answer_of({"choices": [{"finish_reason": "length", "message": {"content": None}}]}).output == ""
    assert answer_of({**MESSAGE, "stop_reason": "refusal"}).is_filtered
    assert not answer_of(MESSAGE).is_filtered


@pytest.mark.parametrize(
    "garbage",
    [
        None,
        "text",
        [],
        {},
        {"content": "Paris"},
        {**MESSAGE, "content": None},
        {**MESSAGE, "stop_reason": None},
        {**MESSAGE, "usage": None},
        {**MESSAGE, "usage": {"input_tokens": "many", "output_tokens": 1}},
        {**MESSAGE, "content": ["Paris"]},
        {**MESSAGE, "content": [{"type": "text"}]},
        {"choices": []},
        {"choices": None},
        {"choices": [{"finish_reason": "stop", "message": {}}]},
        {"choices": [{"message": {"content": "x"}}]},
        {"choices": [{"finish_reason": "stop", "message": {"content": 7}}]},
        {**COMPLETION, "usage": {"prompt_tokens": -1}},
    ],
)
def test_an_incomplete_reply_is_an_error(garbage):
    """A reply that lacks a part is not scored."""
    with pytest.raises(InvalidReply):
        answer_of(garbage)


MESSAGE_EVENTS: list[dict[str, Any]] = [
    {
        "type": "message_start",
        "message": {
            "content": [],
            "stop_reason": None,
            "usage": {"input_tokens": 10, "output_tokens": 1, "cache_read_input_tokens": 5},
        },
    },
    {"type": "content_block_start", "index": 0, "content_block": {"type": "thinking", "thinking": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}},
    {"type": "ping"},
    {"type": "content_block_start", "index": 1, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "Pa"}},
    {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": "ris"}},
    {"type": "content_block_stop", "index": 1},
    {
        "type": "message_delta",
        "delta": {"stop_reason": "end_turn"},
        "usage": {"output_tokens": 2, "input_tokens": None},
    },
    {"type": "message_stop"},
]
CHUNKS = [
    {"choices": [{"delta": {"role": "assistant", "content": ""}, "finish_reason": None}], "usage": None},
    {"choices": [{"delta": {"content": "Pa"}, "finish_reason": None}]},
    {"choices": [{"delta": {"content": "ris"}, "finish_reason": None}]},
    {"choices": [{"delta": {}, "finish_reason": "stop"}]},
    {"choices": [], "usage": {"prompt_tokens": 10, "completion_tokens": 2}},
]


@pytest.mark.parametrize(
    ("sdk", "pieces", "whole"),
    [(Sdk.ANTHROPIC, MESSAGE_EVENTS, MESSAGE), (Sdk.OPENAI, CHUNKS, COMPLETION)],
)
def test_a_stream_gives_the_same_reply_as_a_single_response(sdk, pieces, whole):
    """Text, tokens and finish reason are the same."""
    gathered = gathering(sdk)
    for piece in pieces:
        gathered.add(piece)
    assert gathered.is_whole
    assert answer_of(gathered.whole()) == answer_of(whole)


@pytest.mark.parametrize(
    ("sdk", "pieces"), [(Sdk.ANTHROPIC, MESSAGE_EVENTS[:-1]), (Sdk.OPENAI, CHUNKS[:3])]
)
def test_a_stream_without_its_end_is_incomplete(sdk, pieces):
    """This holds however much has arrived."""
    gathered = gathering(sdk)
    for piece in pieces:
        gathered.add(piece)
        assert not gathered.is_whole
    assert gathered.text == "Paris"


def text_delta(text: str) -> dict[str, object]:
    return {"type": "content_block_delta", "index": 1, "delta": {"type": "text_delta", "text": text}}


@pytest.mark.parametrize(
    ("sdk", "begun", "piece"),
    [
        (Sdk.ANTHROPIC, MESSAGE_EVENTS[:5], text_delta("x" * 1_024)),
        (Sdk.OPENAI, CHUNKS[:1], {"choices": [{"delta": {"content": "x" * 1_024}}]}),
        (Sdk.OPENAI, CHUNKS[:1], {"choices": [{"delta": {"refusal": "x" * 1_024}}]}),
    ],
)
def test_a_stream_keeps_no_more_text_than_an_answer_may_have(sdk, begun, piece):
    """A stream may have far more bytes than its text, so the kept text is bounded while it arrives."""
    gathered = gathering(sdk)
    for each in (*begun, *[piece] * (MAX_TEXT // 1_024)):
        gathered.add(each)
    with pytest.raises(AnswerTooLong, match="more than 524,288 characters") as caught:
        gathered.add(piece)
    assert caught.value.kind == "too_large"


def test_unread_parts_of_a_stream_are_not_kept():
    """Unknown fields, and any number of blocks, fill no memory."""
    gathered = gathering(Sdk.ANTHROPIC)
    for piece in MESSAGE_EVENTS:
        gathered.add(piece)
    known = gathered.whole()
    for number in range(3):
        odd = {f"odd{number}": "x"}
        gathered.add({"type": "message_delta", "delta": odd, "usage": odd})
    assert gathered.whole() == known
    for number in range(MAX_BLOCKS):
        gathered.add({**MESSAGE_EVENTS[4], "index": number})
    with pytest.raises(InvalidReply, match="content blocks"):
        gathered.add({**MESSAGE_EVENTS[4], "index": MAX_BLOCKS})


@pytest.mark.parametrize(
    ("sdk", "piece"),
    [
        (Sdk.ANTHROPIC, {}),
        (
            Sdk.ANTHROPIC,
            {"type": "content_block_delta", "index": 3, "delta": {"type": "text_delta", "text": "x"}},
        ),
        (Sdk.OPENAI, {"choices": ["x"]}),
    ],
)
def test_an_invalid_piece_is_an_error(sdk, piece):
    """A stream with an invalid event is an invalid reply."""
    with pytest.raises(InvalidReply):
        gathering(sdk).add(piece)


def anthropic_error(type_: str, message: str = "") -> dict[str, object]:
    return {"type": "error", "error": {"type": type_, "message": message}}


@pytest.mark.parametrize(
    ("status", "body", "of", "kind"),
    [
        (429, anthropic_error("rate_limit_error"), ErrorClass.RATE_LIMITED, "rate_limited"),
        (529, anthropic_error("overloaded_error"), ErrorClass.RATE_LIMITED, "rate_limited"),
        (200, anthropic_error("overloaded_error"), ErrorClass.RATE_LIMITED, "rate_limited"),
        (500, anthropic_error("api_error"), ErrorClass.UNREACHABLE, "http_500"),
        (200, anthropic_error("api_error"), ErrorClass.UNREACHABLE, "http_500"),
        (503, "<html>", ErrorClass.UNREACHABLE, "http_503"),
        (408, None, ErrorClass.UNREACHABLE, "http_408"),
        (409, None, ErrorClass.UNREACHABLE, "http_409"),
        (200, anthropic_error("strange_error"), ErrorClass.TRANSIENT, "invalid_response"),
        (
            400,
            anthropic_error("invalid_request_error", "top_k: bad"),
            ErrorClass.PERMANENT,
            "invalid_request",
        ),
        (
            400,
            anthropic_error("invalid_request_error", "prompt is too long: 9 > 8"),
            ErrorClass.PERMANENT,
            "prompt_too_long",
        ),
        (
            400,
            {"error": {"code": "context_length_exceeded", "message": "…"}},
            ErrorClass.PERMANENT,
            "prompt_too_long",
        ),
        (413, anthropic_error("request_too_large"), ErrorClass.PERMANENT, "prompt_too_long"),
        (
            400,
            {"error": {"code": "content_filter", "message": "…"}},
            ErrorClass.PERMANENT,
            "content_filter",
        ),
        (
            400,
            anthropic_error("invalid_request_error", "Your credit balance is too low"),
            ErrorClass.PERMANENT,
            "quota",
        ),
        (429, {"error": {"type": "insufficient_quota", "message": "…"}}, ErrorClass.PERMANENT, "quota"),
        (402, {"error": {"message": "Insufficient Balance"}}, ErrorClass.PERMANENT, "quota"),
        (
            401,
            anthropic_error("authentication_error", "invalid key"),
            ErrorClass.PERMANENT,
            "authentication",
        ),
        (403, anthropic_error("permission_error"), ErrorClass.PERMANENT, "permission"),
        (
            404,
            anthropic_error("not_found_error", "model: claude-x"),
            ErrorClass.PERMANENT,
            "model_not_found",
        ),
        (422, {"message": "bad"}, ErrorClass.PERMANENT, "invalid_request"),
        (418, "teapot", ErrorClass.PERMANENT, "invalid_request"),
    ],
)
def test_every_refusal_has_its_class_and_kind(status, body, of, kind):
    """One table classifies errors, the same for both SDKs and for the middle of a stream."""
    failure = classify_error(parse_error(status, body), ANTHROPIC_ACCESS)
    assert (failure.of, failure.kind) == (of, kind)


@pytest.mark.parametrize(
    ("status", "message", "help_"),
    [
        (401, f"Incorrect API key provided: {KEY}", "the key in OPENAI_API_KEY was refused by OpenAI"),
        (404, "The model does not exist", "there is no model 'gpt-x' at https://api.openai.com/v1"),
        (400, "maximum context length is 8", "too long for gpt-x: shorten it"),
        (403, "no", "the key in OPENAI_API_KEY may not use 'gpt-x'"),
        (400, f"strange {KEY}", "check the parameters"),
    ],
)
def test_a_message_has_the_remedy_and_never_the_key(status, message, help_):
    """The key is redacted even where the provider repeats it."""
    with knowing(KEY):
        failure = classify_error(parse_error(status, {"error": {"message": message}}), OPENAI_ACCESS)
    assert help_ in failure.message
    assert KEY not in failure.message


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("<html>Not Found</html>", "wrong_base_url"),
        ({"detail": "Not Found"}, "wrong_base_url"),
        ({"error": {"message": "The model `gpt-x` does not exist"}}, "model_not_found"),
    ],
)
def test_a_wrong_address_is_distinguished_from_a_wrong_model(body, kind):
    """A 404 from a configured address that names no model is about the address."""
    access = replace(OPENAI_ACCESS, base_url="http://127.0.0.1:9/v2")
    failure = classify_error(parse_error(404, body), access)
    assert failure.kind == kind
    assert "http://127.0.0.1:9/v2" in failure.message
    assert ("OPENAI_BASE_URL" in failure.message) == (kind == "wrong_base_url")


def test_retry_after_is_kept_and_overload_has_a_default():
    """A provider's Retry-After is used; an overloaded provider without one gets a pause."""
    limited = classify_error(parse_error(429, None), OPENAI_ACCESS, retry_after=timedelta(seconds=9))
    assert limited.retry_after == timedelta(seconds=9)
    assert classify_error(parse_error(529, None), ANTHROPIC_ACCESS).retry_after == timedelta(seconds=5)
    assert classify_error(parse_error(429, None), OPENAI_ACCESS).retry_after is None
