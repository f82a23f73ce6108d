"""Validation and parsing of requests to Anthropic's Messages API."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scoreline.provider_sim.answers import ModelRequest, digest_of, input_tokens
from scoreline.provider_sim.http_messages import Json, invalid


def read_message(params: Json) -> ModelRequest:
    """Parse a request; raises `ApiError` with the API's message."""
    if not isinstance(params, dict):
        raise invalid("Input should be a valid dictionary")
    _check(params)
    texts = [text for message in params["messages"] for text in _texts(message["content"])]
    system = list(_texts(params.get("system") or ""))
    tool, schema = _form(params)
    forms = [json.dumps(params[name]) for name in ("tools", "output_config") if params.get(name)]
    return ModelRequest(
        model=params["model"],
        prompt="\n".join(_texts(_last_of_user(params["messages"]))),
        digest=digest_of(params),
        input_tokens=input_tokens(*system, *texts, *forms),
        max_tokens=params["max_tokens"],
        streamed=bool(params.get("stream")),
        tool=tool,
        schema=schema,
    )


def _check(params: Mapping[str, Any]) -> None:
    for name in ("model", "max_tokens", "messages"):
        if params.get(name) is None:
            raise invalid(f"{name}: Field required")
    if not isinstance(params["model"], str) or not params["model"]:
        raise invalid("model: Input should be a valid string")
    most = params["max_tokens"]
    if not isinstance(most, int) or isinstance(most, bool):
        raise invalid("max_tokens: Input should be a valid integer")
    if most < 1:
        raise invalid("max_tokens: Input should be greater than or equal to 1")
    temperature = params.get("temperature")
    if temperature is not None and not (isinstance(temperature, int | float) and 0 <= temperature <= 1):
        raise invalid("temperature: range: 0..1")
    _check_messages(params["messages"])


def _check_messages(messages: object) -> None:
    if not isinstance(messages, list):
        raise invalid("messages: Input should be a valid list")
    if not messages:
        raise invalid("messages: at least one message is required")
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in ("user", "assistant", "system"):
            raise invalid(f"messages.{at}.role: Input should be 'user', 'assistant' or 'system'")
        content = message.get("content")
        if content is None:
            raise invalid(f"messages.{at}.content: Field required")
        if not isinstance(content, str | list):
            raise invalid(f"messages.{at}.content: Input should be a valid string or list")
        if not content and at < len(messages) - 1:
            raise invalid(f"messages.{at}: all messages must have non-empty content")
        if isinstance(content, list) and not all(isinstance(e, dict) and "type" in e for e in content):
            raise invalid(f"messages.{at}.content: Input should be a list of content blocks")


def _texts(content: str | Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if isinstance(content, str):
        yield content
        return
    for block in content:
        if block.get("type") == "text":
            yield str(block.get("text", ""))
        elif block.get("type") == "tool_result":
            yield from _texts(block.get("content") or "")


def _last_of_user(messages: Sequence[Mapping[str, Any]]) -> Json:
    return next((each["content"] for each in reversed(messages) if each["role"] == "user"), "")


def _form(params: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any] | None]:
    """Find what form the answer must have: a tool that has to be used, or a schema."""
    choice, tools = params.get("tool_choice") or {}, params.get("tools") or []
    if choice.get("type") in ("tool", "any"):
        named = [
            each for each in tools if choice["type"] == "any" or each.get("name") == choice.get("name")
        ]
        if not named:
            raise invalid(f"Tool '{choice.get('name')}' not found in provided tools")
        return str(named[0].get("name")), named[0].get("input_schema") or {}
    wanted = (params.get("output_config") or {}).get("format") or params.get("output_format") or {}
    return None, wanted.get("schema") if wanted.get("type") == "json_schema" else None
