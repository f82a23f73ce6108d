"""The simulator's answers, and its values for schemas."""

from typing import Any

from scoreline.provider_sim.answers import SimulatedAnswer, answer
from scoreline.provider_sim.anthropic_messages import AnthropicMessages
from scoreline.provider_sim.settings import (
    AnswerSettings,
)

ASK = {"model": "m", "max_tokens": 500, "messages": [{"role": "user", "content": "Why?"}]}


def answer_to(params: Any = ASK, **wanted: Any) -> SimulatedAnswer:
    return answer(AnthropicMessages().read(params), AnswerSettings(**wanted))


def test_the_same_request_is_answered_the_same_and_streaming_makes_no_difference():
    """The answer depends on the request and the seed, not on the transport."""
    assert answer_to() == answer_to({**ASK, "stream": True, "metadata": {"user_id": "x"}})
    assert answer_to() != answer_to(seed=1)
    assert answer_to() != answer_to({**ASK, "messages": [{"role": "user", "content": "Why not?"}]})


def test_modes():
    """The answer is an echo, a fixed text, or the entry of a map for the prompt."""
    assert answer_to(mode="echo").text == "Why?"
    assert answer_to(mode="text", text="Because.").text == "Because."
    assert answer_to(mode="map", answers={"Why?": "42"}).text == "42"
    assert answer_to(mode="map", answers={"*": "else"}).text == "else"
    assert answer_to(mode="map", answers={}).text == answer_to().text


def test_an_answer_longer_than_allowed_is_truncated():
    """Its stop reason is the token limit."""
    short = answer_to({**ASK, "max_tokens": 2})
    assert (short.is_cut, short.output_tokens, len(short.text)) == (True, 2, 8)


def test_verdicts_pass_at_the_configured_rate():
    """The share is measured over many requests."""
    tool = {"name": "judge", "input_schema": {"properties": {"ok": {"type": "boolean"}}}}
    form = {"tools": [tool], "tool_choice": {"type": "tool", "name": "judge"}}
    requests = ({**ASK, **form, "messages": [{"role": "user", "content": str(i)}]} for i in range(1_000))
    passed = sum(answer_to(each, pass_rate=0.3).tool_input["ok"] for each in requests)
    assert 250 < passed < 350
