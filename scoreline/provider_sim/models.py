"""The list of models, in the format of either API."""

from typing import Any

from scoreline.provider_sim.calls import CallHandler
from scoreline.provider_sim.http_messages import HttpReply, HttpRequest, in_json

_SOME = ("simulated-large", "simulated-small")
_RELEASED = "2026-01-01T00:00:00Z"
_RELEASED_AT = 1_767_225_600


async def list_models(request: HttpRequest, calls: CallHandler) -> HttpReply:
    """List the models there are."""
    calls.check_key(request.key)
    names = calls.settings.access.models or _SOME
    if "anthropic-version" not in request.headers:
        models = [{"id": n, "object": "model", "created": _RELEASED_AT, "owned_by": "sim"} for n in names]
        return in_json(200, {"object": "list", "data": models})
    data = [_anthropic(name, calls.settings.access.context_tokens) for name in names]
    return in_json(200, {"data": data, "has_more": False, "first_id": names[0], "last_id": names[-1]})


def _anthropic(name: str, context_tokens: int) -> dict[str, Any]:
    return {
        "id": name,
        "type": "model",
        "display_name": name,
        "created_at": _RELEASED,
        "lifecycle": "active",
        "max_input_tokens": context_tokens,
    }
