"""The verdict in the reply of a judge."""

import pytest

from executor.evaluators.llm_verdict import Scale, read_verdict
from tests.unit.executor.evaluators.judges import OPENAI, reply_with

PLAIN = Scale(0.0, 1.0, 0.5)


@pytest.mark.parametrize(
    "text", ['```json\n{"reason": "r", "score": 1}\n```', 'Here: {"score": 1, "reason": "r"}']
)
def test_text_around_a_verdict_is_ignored(text):
    """Where the format can't be enforced, models write text around it."""
    assert read_verdict(reply_with(OPENAI, text), PLAIN).reason == "r"


def test_a_verdict_in_the_text_counts_without_the_tool():
    """A judge may answer in text although it has a tool."""
    message = {"content": [{"type": "text", "text": '{"reason": "r", "score": 0.2}'}]}
    assert read_verdict(message, PLAIN).passed is False
