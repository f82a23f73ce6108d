"""Requests to providers and their replies as plain data: bodies, headers, errors."""

from datetime import UTC, datetime

import pytest
from pydantic import JsonValue

from eventlog.payloads import TokenUsage
from providers.requests import InvalidReply, answer_of, must_stream, request_of
from tests.unit.providers.sample_replies import COMPLETION, MESSAGE

NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


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
