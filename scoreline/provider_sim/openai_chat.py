"""OpenAI's chat completions API: replies, streams and headers."""

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

from scoreline.provider_sim.answers import ModelRequest, SimulatedAnswer
from scoreline.provider_sim.anthropic_messages import pieces
from scoreline.provider_sim.http_messages import ApiError, Json, compact
from scoreline.provider_sim.limits import BucketStatus
from scoreline.provider_sim.openai_requests import read_chat


class OpenAIChat:
    """Implements `ProviderApi` for chat completions."""

    endpoint = "/v1/chat/completions"
    request_id_header = "x-request-id"
    overloaded = ApiError(503, "server_error", "The engine is currently overloaded, please try again later")
    broken = ApiError(500, "server_error", "The server had an error while processing your request")

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """No headers are required."""

    def read(self, params: Json) -> ModelRequest:
        """Parse a request; raises `ApiError` with the API's message."""
        return read_chat(params)

    def whole(
        self, request: ModelRequest, answer: SimulatedAnswer, *, name: str, created: int
    ) -> dict[str, Any]:
        """Answer at once."""
        message: dict[str, Any] = {"role": "assistant", "content": answer.text, "refusal": None}
        if answer.tool is not None:
            message |= {"content": None, "tool_calls": [_call(answer, name, json.dumps(answer.tool_input))]}
        choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(answer)}
        head = _head(request, name, created, kind="chat.completion")
        return head | {"choices": [choice], "usage": _usage(request, answer)}

    def stream(
        self, request: ModelRequest, answer: SimulatedAnswer, *, name: str, created: int
    ) -> Iterator[bytes]:
        """Answer in chunks."""
        head = _head(request, name, created, kind="chat.completion.chunk")
        if request.usage_wanted:
            head["usage"] = None
        for delta in _deltas(answer, name):
            yield _chunk(head | {"choices": [_choice(delta)]})
        yield _chunk(head | {"choices": [_choice({}, finish=_finish(answer))]})
        if request.usage_wanted:
            yield _chunk(head | {"choices": [], "usage": _usage(request, answer)})
        yield b"data: [DONE]\n\n"

    def stream_error(self) -> bytes:
        """Return the event of an error within a stream."""
        return _chunk(self.error(self.broken, ""))

    def error(self, refused: ApiError, request_id: str) -> dict[str, Any]:  # noqa: ARG002 - one signature for all APIs
        """Refuse."""
        kind, code = refused.kind, refused.code
        match refused.status:
            case 429:
                kind, code = ("requests" if code == "requests" else "tokens"), "rate_limit_exceeded"
            case 400 | 401 | 404 | 413:
                kind = "invalid_request_error"
            case _:
                pass
        error = {"message": refused.message, "type": kind, "param": refused.param, "code": code}
        return {"error": error}

    def limit_headers(self, statuses: Mapping[str, BucketStatus], now: datetime) -> dict[str, str]:  # noqa: ARG002 - one signature for all APIs
        """Return the rate limit headers."""
        return {
            f"x-ratelimit-{name}-{kind}": value
            for kind, status in statuses.items()
            if kind in ("requests", "tokens")
            for name, value in (
                ("limit", str(status.limit)),
                ("remaining", str(status.remaining)),
                ("reset", duration(status.reset)),
            )
        }


def duration(seconds: float) -> str:
    """Write a duration as the API does: `20ms`, `1.5s`, `6m0s`, `1h0m0s`."""
    if seconds < 1:
        return f"{round(seconds * 1000)}ms"
    minutes, rest = divmod(round(seconds, 3), 60)
    hours, minutes = divmod(int(minutes), 60)
    if hours:
        return f"{hours}h{minutes}m{rest:.0f}s"
    return f"{minutes}m{rest:.3g}s" if minutes else f"{rest:.4g}s"


def _head(request: ModelRequest, name: str, created: int, *, kind: str) -> dict[str, Any]:
    return {
        "id": f"chatcmpl-{name}",
        "object": kind,
        "created": created,
        "model": request.model,
        "service_tier": "default",
        "system_fingerprint": "fp_simulated",
    }


def _usage(request: ModelRequest, answer: SimulatedAnswer) -> dict[str, Any]:
    return {
        "prompt_tokens": request.input_tokens,
        "completion_tokens": answer.output_tokens,
        "total_tokens": request.input_tokens + answer.output_tokens,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _call(answer: SimulatedAnswer, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": answer.tool, "arguments": arguments}
    return {"id": f"call_{name}", "type": "function", "function": function}


def _deltas(answer: SimulatedAnswer, name: str) -> Iterator[dict[str, Any]]:
    if answer.tool is None:
        yield {"role": "assistant", "content": "", "refusal": None}
        yield from ({"content": piece} for piece in pieces(answer.text))
        return
    yield {"role": "assistant", "content": None, "tool_calls": [{"index": 0, **_call(answer, name, "")}]}
    for piece in pieces(json.dumps(answer.tool_input)):
        yield {"tool_calls": [{"index": 0, "function": {"arguments": piece}}]}


def _choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}


def _finish(answer: SimulatedAnswer) -> str:
    if answer.tool is not None:
        return "tool_calls"
    return "length" if answer.is_cut else "stop"


def _chunk(value: object) -> bytes:
    return b"data: %b\n\n" % compact(value)
