"""The handler of each path, and the name under which its calls are counted."""

import re
from collections.abc import Awaitable, Callable
from functools import partial

from scoreline.provider_sim.anthropic_messages import AnthropicMessages
from scoreline.provider_sim.calls import CallHandler
from scoreline.provider_sim.faults import draw_fault, uniform
from scoreline.provider_sim.http_messages import ApiError, ConnectionAborted, HttpReply, HttpRequest
from scoreline.provider_sim.message_batches import LARGEST, MessageBatches
from scoreline.provider_sim.message_batches import PATH as BATCHES
from scoreline.provider_sim.models import list_models
from scoreline.provider_sim.openai_chat import OpenAIChat

_LARGEST_CALL = 32 * 1024 * 1024
_BATCH = re.compile(rf"{BATCHES}/([^/]+)(/cancel|/results)?\Z")

Answering = Callable[[], Awaitable[HttpReply]]


def largest(path: str) -> int:
    """Return the maximum size of a body."""
    return LARGEST if path == BATCHES else _LARGEST_CALL


class Routes:
    """Dispatches requests to handlers."""

    def __init__(self, calls: CallHandler, batches: MessageBatches) -> None:
        self._calls = calls
        self._batches = batches
        self._messages, self._chat = AnthropicMessages(), OpenAIChat()

    def find(self, request: HttpRequest) -> tuple[str, Answering]:
        """Find who answers a request, and the name of the endpoint."""
        match request.method, request.path:
            case "POST", "/v1/messages":
                return "/v1/messages", partial(self._calls.serve, request, self._messages)
            case "POST", "/v1/chat/completions":
                return "/v1/chat/completions", partial(self._calls.serve, request, self._chat)
            case "GET", "/v1/models":
                return "/v1/models", partial(list_models, request, self._calls)
            case _ if request.path.startswith(BATCHES):
                name, answering = self._of_batches(request)
                return name, partial(self._guarded, request, name, answering)
            case _:
                return "elsewhere", partial(_nowhere, request)

    def _of_batches(self, request: HttpRequest) -> tuple[str, Answering]:
        batches, found = self._batches, _BATCH.match(request.path)
        name, tail = (found[1], found[2] or "") if found else ("", request.path.removeprefix(BATCHES))
        match request.method, bool(found), tail:
            case "POST", False, "":
                return "batches.create", partial(batches.create, request)
            case "GET", False, "":
                return "batches.list", partial(batches.show_all, request)
            case "GET", True, "":
                return "batches.retrieve", partial(batches.retrieve, request, name)
            case "DELETE", True, "":
                return "batches.delete", partial(batches.delete, request, name)
            case "POST", True, "/cancel":
                return "batches.cancel", partial(batches.cancel, request, name)
            case "GET", True, "/results":
                return "batches.results", partial(batches.results, request, name)
            case _:
                return "elsewhere", partial(_nowhere, request)

    async def _guarded(self, request: HttpRequest, endpoint: str, answering: Answering) -> HttpReply:
        """Check the key, and apply the faults that any call can meet."""
        self._calls.check_key(request.key)
        self._messages.check_headers(request.headers)
        visit = sum(number for (name, _), number in self._calls.stats.calls.items() if name == endpoint)
        fortune = uniform(self._calls.settings.answers.seed, endpoint, visit)
        match draw_fault(self._calls.settings.faults, streamed=False, fortune=fortune):
            case "overloaded":
                raise self._messages.overloaded
            case "server_error":
                raise self._messages.broken
            case "reset_before" as fault:
                raise ConnectionAborted(fault)
            case _:
                return await answering()


async def _nowhere(request: HttpRequest) -> HttpReply:
    raise ApiError(404, "not_found_error", f"no {request.method} {request.path}")
