"""Anthropic's Messages: what they must look like, and what the answers do."""

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from scoreline.provider_sim.answers import ModelRequest, SimulatedAnswer
from scoreline.provider_sim.anthropic_requests import read_message
from scoreline.provider_sim.http_messages import ApiError, Json, compact, invalid
from scoreline.provider_sim.limits import BucketStatus

_PIECE = 24
_MOST_PIECES = 50


class AnthropicMessages:
    """How Messages are spoken."""

    endpoint = "/v1/messages"
    request_id_header = "request-id"
    overloaded = ApiError(529, "overloaded_error", "Overloaded")
    broken = ApiError(500, "api_error", "Internal server error")

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Insist on a version."""
        if not headers.get("anthropic-version"):
            raise invalid("anthropic-version: header is required")

    def read(self, params: Json) -> ModelRequest:
        """Understand a request, or refuse it in the words of the API."""
        return read_message(params)

    def whole(self, ask: ModelRequest, said: SimulatedAnswer, *, name: str, created: int) -> dict[str, Any]:  # noqa: ARG002 - one shape for all dialects
        """Answer at once."""
        head = _head(ask, name)
        head["usage"]["output_tokens"] = said.output_tokens
        return head | {"content": [_block(said, name)], "stop_reason": _stop_reason(said)}

    def stream(
        self, ask: ModelRequest, said: SimulatedAnswer, *, name: str, **_: object
    ) -> Iterator[bytes]:
        """Answer in events."""
        block = _block(said, name)
        blank: dict[str, Any] = {"text": ""} if said.tool is None else {"input": {}}
        empty = block | blank
        yield _event("message_start", message=_head(ask, name))
        yield _event("content_block_start", index=0, content_block=empty)
        yield _event("ping")
        for piece in pieces(said.text if said.tool is None else json.dumps(said.tool_input)):
            delta = (
                {"type": "text_delta", "text": piece}
                if said.tool is None
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield _event("content_block_delta", index=0, delta=delta)
        yield _event("content_block_stop", index=0)
        end = {"stop_reason": _stop_reason(said), "stop_sequence": None}
        usage = {"input_tokens": ask.input_tokens, "output_tokens": said.output_tokens}
        yield _event("message_delta", delta=end, usage=usage)
        yield _event("message_stop")

    def stream_error(self) -> bytes:
        """Say in the middle of a stream that it won't go on."""
        return _event("error", error={"type": "overloaded_error", "message": "Overloaded"})

    def error(self, refused: ApiError, request_id: str) -> dict[str, Any]:
        """Refuse."""
        error = {"type": refused.kind, "message": refused.message}
        return {"type": "error", "error": error, "request_id": request_id}

    def limit_headers(self, standings: Mapping[str, BucketStatus], now: datetime) -> dict[str, str]:
        """Say how the limits stand."""
        return {
            f"anthropic-ratelimit-{kind}-{name}": value
            for kind, standing in standings.items()
            for name, value in (
                ("limit", str(standing.limit)),
                ("remaining", str(standing.remaining)),
                ("reset", rfc3339(now + timedelta(seconds=standing.reset))),
            )
        }


def rfc3339(moment: datetime) -> str:
    """Write a time as the API does."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def pieces(text: str) -> Sequence[str]:
    """Cut a text into what comes at a time."""
    size = max(_PIECE, -(-len(text) // _MOST_PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _head(ask: ModelRequest, name: str) -> dict[str, Any]:
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": ask.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": ask.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
            "service_tier": "standard",
        },
    }


def _block(said: SimulatedAnswer, name: str) -> dict[str, Any]:
    if said.tool is None:
        return {"type": "text", "text": said.text}
    return {"type": "tool_use", "id": f"toolu_{name}", "name": said.tool, "input": said.tool_input}


def _stop_reason(said: SimulatedAnswer) -> str:
    if said.tool is not None:
        return "tool_use"
    return "max_tokens" if said.is_cut else "end_turn"


def _event(kind: str, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), compact({"type": kind, **fields}))
