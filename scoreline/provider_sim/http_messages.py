"""Requests and replies between the server and its handlers."""

import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import IO, Any

Headers = Mapping[str, str]
Json = Any
"""Any JSON value."""


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """A received request; a large body is stored in a file."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Headers = field(repr=False)  # a key is among them
    body: IO[bytes]
    too_large: bool = False

    @property
    def key(self) -> str:
        """The key it was sent with, whichever way."""
        bearer = self.headers.get("authorization", "")
        return self.headers.get("x-api-key") or bearer.removeprefix("Bearer").strip()

    def json(self) -> Json:
        """Read the body."""
        return json.loads(self.body.read())


def _nothing() -> None:
    pass


@dataclass(frozen=True, slots=True)
class HttpReply:
    """A reply; chunks without a length are sent as they are produced."""

    status: int
    headers: Headers
    body: bytes | AsyncIterator[bytes]
    length: int | None = None
    done: Callable[[], None] = _nothing


class ConnectionAborted(Exception):  # noqa: N818 - what is to happen
    """Close the connection here: with a reset, or as if the reply were complete."""

    def __init__(self, name: str, *, reset: bool = True) -> None:
        super().__init__(name)
        self.name = name
        self.reset = reset


class ApiError(Exception):
    """A rejected call; `kind` is the error type of Anthropic's API."""

    def __init__(
        self, status: int, kind: str, message: str, *, param: str | None = None, code: str | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.kind = kind
        self.message = message
        self.param = param
        self.code = code


def invalid(message: str, *, param: str | None = None, code: str | None = None) -> ApiError:
    """Refuse what does not make sense."""
    return ApiError(400, "invalid_request_error", message, param=param, code=code)


def compact(value: object) -> bytes:
    """Serialise JSON as providers do; a lone surrogate, which UTF-8 can't encode, is replaced."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode(errors="replace")


def in_json(status: int, value: object, headers: Headers | None = None) -> HttpReply:
    """Answer in JSON."""
    return HttpReply(status, {"content-type": "application/json", **(headers or {})}, compact(value))
