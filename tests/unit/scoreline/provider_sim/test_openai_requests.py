"""Requests for chat completions: validation and parsing."""

from typing import Any

import pytest

from scoreline.provider_sim.http_messages import ApiError
from scoreline.provider_sim.openai_requests import read_chat

ASK: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "Why?"}]}


@pytest.mark.parametrize(
    "change", [{"model": ""}, {"messages": []}, {"messages": [{"role": "x"}]}, {"max_tokens": 0}]
)
def test_chats_that_make_no_sense_are_refused(change):
    """The status is 400, too."""
    with pytest.raises(ApiError):
        read_chat({**ASK, **change})


def test_the_newer_name_of_the_token_limit_has_precedence():
    """Without either the answer has no limit of its own."""
    assert read_chat({**ASK, "max_tokens": 5, "max_completion_tokens": 7}).max_tokens == 7
    assert read_chat({**ASK, "max_tokens": 5}).max_tokens == 5
    assert read_chat(ASK).max_tokens == 1 << 20


def test_the_prompt_is_the_text_of_the_last_user_message():
    """Parts of other types are left out."""
    parts = [{"type": "text", "text": "a"}, {"type": "image_url"}, {"type": "text", "text": "b"}]
    messages = [*ASK["messages"], {"role": "user", "content": parts}, {"role": "assistant", "content": "c"}]
    assert read_chat({**ASK, "messages": messages}).prompt == "a\nb"


def test_a_required_function_gives_the_answer_its_form():
    """`required` takes the first function; a name takes that one; an unknown name is refused."""
    tools = [{"function": {"name": name, "parameters": {"title": name}}} for name in ("one", "two")]
    named = {"type": "function", "function": {"name": "two"}}
    first = read_chat({**ASK, "tools": tools, "tool_choice": "required"})
    second = read_chat({**ASK, "tools": tools, "tool_choice": named})
    assert (first.tool, first.schema) == ("one", {"title": "one"})
    assert (second.tool, second.schema) == ("two", {"title": "two"})
    with pytest.raises(ApiError, match="no function 'two'"):
        read_chat({**ASK, "tools": tools[:1], "tool_choice": named})
