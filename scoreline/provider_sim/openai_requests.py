"""Validation and parsing of requests for chat completions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from scoreline.provider_sim.answers import ModelRequest, digest_of, input_tokens
from scoreline.provider_sim.http_messages import ApiError, Json, invalid

_ROLES = ("system", "developer", "user", "assistant", "tool", "function")
_NO_LIMIT = 1 << 20


def read_chat(params: Json) -> ModelRequest:
    """Parse a request; raises `ApiError` with the API's message."""
    _check(params)
    texts = [text for message in params["messages"] for text in _texts(message.get("content"))]
    tool, schema = _form(params)
    options = params.get("stream_options") or {}
    return ModelRequest(
        model=params["model"],
        prompt="\n".join(_texts(_last_of_user(params["messages"]))),
        digest=digest_of(params),
        input_tokens=input_tokens(*texts, *([json.dumps(params["tools"])] if params.get("tools") else [])),
        max_tokens=params.get("max_completion_tokens") or params.get("max_tokens") or _NO_LIMIT,
        streamed=bool(params.get("stream")),
        usage_wanted=bool(options.get("include_usage")),
        tool=tool,
        schema=schema,
    )


def _check(params: Json) -> None:
    if not isinstance(params, dict):
        raise invalid("We could not parse the JSON body of your request.")
    if not isinstance(params.get("model"), str) or not params["model"]:
        raise invalid("you must provide a model parameter")
    messages = params.get("messages")
    if messages is None:
        raise _missing("messages")
    if not isinstance(messages, list) or not messages:
        raise invalid("Invalid 'messages': empty array.", param="messages", code="empty_array")
    for at, message in enumerate(messages):
        if not isinstance(message, dict) or message.get("role") not in _ROLES:
            raise invalid(f"Invalid value for 'messages[{at}].role'", param=f"messages[{at}].role")
        if not isinstance(message.get("content"), str | list | None):
            raise invalid(f"Invalid type for 'messages[{at}].content'", param=f"messages[{at}].content")
    for name in ("max_tokens", "max_completion_tokens"):
        most = params.get(name)
        if most is not None and (not isinstance(most, int) or isinstance(most, bool) or most < 1):
            raise invalid(f"Invalid '{name}': integer of at least 1 expected.", param=name)


def _missing(name: str) -> ApiError:
    return invalid(f"Missing required parameter: '{name}'.", param=name, code="missing_required_parameter")


def _texts(content: str | Sequence[Mapping[str, Any]] | None) -> Iterator[str]:
    if isinstance(content, str):
        yield content
    else:
        yield from (str(each.get("text", "")) for each in content or () if each.get("type") == "text")


def _last_of_user(messages: Sequence[Mapping[str, Any]]) -> Json:
    return next((each.get("content") for each in reversed(messages) if each["role"] == "user"), "")


def _form(params: Mapping[str, Any]) -> tuple[str | None, Mapping[str, Any] | None]:
    """Find what form the answer must have: a function that has to be called, or a schema."""
    functions = [each.get("function") or {} for each in params.get("tools") or []]
    choice = params.get("tool_choice")
    if choice == "required" or isinstance(choice, dict):
        name = None if choice == "required" else (choice.get("function") or {}).get("name")
        named = [each for each in functions if name is None or each.get("name") == name]
        if not named:
            raise invalid(f"Invalid value for 'tool_choice': no function {name!r}", param="tool_choice")
        return str(named[0].get("name")), named[0].get("parameters") or {}
    wanted = params.get("response_format") or {}
    match wanted.get("type"):
        case "json_schema":
            return None, (wanted.get("json_schema") or {}).get("schema") or {}
        case "json_object":
            return None, {"properties": {"answer": {"type": "string"}}}
        case _:
            return None, None
