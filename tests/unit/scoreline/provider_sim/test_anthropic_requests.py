"""Requests to the Messages API: validation and parsing."""

import pytest

from scoreline.provider_sim.anthropic_requests import read_message
from scoreline.provider_sim.http_messages import ApiError

ASK = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "Why?"}]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"model": None}, "model: Field required"),
        ({"max_tokens": None}, "max_tokens: Field required"),
        ({"messages": None}, "messages: Field required"),
        ({"max_tokens": 0}, "max_tokens: Input should be greater than or equal to 1"),
        ({"max_tokens": "7"}, "max_tokens: Input should be a valid integer"),
        ({"messages": []}, "messages: at least one message is required"),
        ({"messages": [{"role": "user"}]}, "messages.0.content: Field required"),
        (
            {"messages": [{"role": "user", "content": ["x"]}]},
            "messages.0.content: Input should be a list of content blocks",
        ),
        ({"temperature": 2}, "temperature: range: 0..1"),
        ({"tool_choice": {"type": "tool", "name": "x"}}, "Tool 'x' not found in provided tools"),
    ],
)
def test_requests_that_make_no_sense_are_refused(change, message):
    """The error has the API's format."""
    with pytest.raises(ApiError) as caught:
        read_message({**ASK, **change})
    assert (caught.value.status, caught.value.message) == (400, message)
