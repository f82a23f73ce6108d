"""Streamed replies of providers: the pieces come to the reply that a single response would be."""

from typing import Any

import pytest

from eventlog.payloads import MAX_TEXT
from providers.requests import InvalidReply, answer_of
from providers.streams import MAX_BLOCKS, AnswerTooLong, gathering
from providers.table import Sdk
from tests.unit.providers.sample_replies import COMPLETION, MESSAGE

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
