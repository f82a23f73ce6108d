"""Anthropic's Messages API: replies, streams and headers."""

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
    """Implements `ProviderApi` for Messages."""

    endpoint = "/v1/messages"
    request_id_header = "request-id"
    overloaded = ApiError(529, "overloaded_error", "Overloaded")
    broken = ApiError(500, "api_error", "Internal server error")

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Insist on a version."""
        if not headers.get("anthropic-version"):
            raise invalid("anthropic-version: header is required")

    def read(self, params: Json) -> ModelRequest:
        """Parse a request; raises `ApiError` with the API's message."""
        return read_message(params)

    def whole(
        self,
        request: ModelRequest,
        answer: SimulatedAnswer,
        *,
        name: str,
        created: int,  # noqa: ARG002 - part of the interface
    ) -> dict[str, Any]:
        """Return an unstreamed reply."""
        head = _head(request, name)
        head["usage"]["output_tokens"] = answer.output_tokens
        return head | {"content": [_block(answer, name)], "stop_reason": _stop_reason(answer)}

    def stream(
        self, request: ModelRequest, answer: SimulatedAnswer, *, name: str, **_: object
    ) -> Iterator[bytes]:
        """Answer in events."""
        block = _block(answer, name)
        blank: dict[str, Any] = {"text": ""} if answer.tool is None else {"input": {}}
        empty = block | blank
        yield _event("message_start", message=_head(request, name))
        yield _event("content_block_start", index=0, content_block=empty)
        yield _event("ping")
        for piece in pieces(answer.text if answer.tool is None else json.dumps(answer.tool_input)):
            delta = (
                {"type": "text_delta", "text": piece}
                if answer.tool is None
                else {"type": "input_json_delta", "partial_json": piece}
            )
            yield _event("content_block_delta", index=0, delta=delta)
        yield _event("content_block_stop", index=0)
        end = {"stop_reason": _stop_reason(answer), "stop_sequence": None}
        usage = {"input_tokens": request.input_tokens, "output_tokens": answer.output_tokens}
        yield _event("message_delta", delta=end, usage=usage)
        yield _event("message_stop")

    def stream_error(self) -> bytes:
        """Return the event of an error within a stream."""
        return _event("error", error={"type": "overloaded_error", "message": "Overloaded"})

    def error(self, refused: ApiError, request_id: str) -> dict[str, Any]:
        """Refuse."""
        error = {"type": refused.kind, "message": refused.message}
        return {"type": "error", "error": error, "request_id": request_id}

    def limit_headers(self, statuses: Mapping[str, BucketStatus], now: datetime) -> dict[str, str]:
        """Return the rate limit headers."""
        return {
            f"anthropic-ratelimit-{kind}-{name}": value
            for kind, status in statuses.items()
            for name, value in (
                ("limit", str(status.limit)),
                ("remaining", str(status.remaining)),
                ("reset", rfc3339(now + timedelta(seconds=status.reset))),
            )
        }


def rfc3339(moment: datetime) -> str:
    """Write a time as the API does."""
    return moment.isoformat(timespec="microseconds").replace("+00:00", "Z")


def pieces(text: str) -> Sequence[str]:
    """Split a text into the pieces of a stream."""
    size = max(_PIECE, -(-len(text) // _MOST_PIECES))
    return [text[at : at + size] for at in range(0, len(text), size)]


def _head(request: ModelRequest, name: str) -> dict[str, Any]:
    return {
        "id": f"msg_{name}",
        "type": "message",
        "role": "assistant",
        "model": request.model,
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": request.input_tokens,
            "cache_creation_input_tokens": 0,
            "cache_read_input_tokens": 0,
            "output_tokens": 1,
            "service_tier": "standard",
        },
    }


def _block(answer: SimulatedAnswer, name: str) -> dict[str, Any]:
    if answer.tool is None:
        return {"type": "text", "text": answer.text}
    return {"type": "tool_use", "id": f"toolu_{name}", "name": answer.tool, "input": answer.tool_input}


def _stop_reason(answer: SimulatedAnswer) -> str:
    if answer.tool is not None:
        return "tool_use"
    return "max_tokens" if answer.is_cut else "end_turn"


def _event(kind: str, **fields: object) -> bytes:
    return b"event: %b\ndata: %b\n\n" % (kind.encode(), compact({"type": kind, **fields}))
