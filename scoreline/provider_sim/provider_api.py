"""The interface of a simulated API."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from scoreline.provider_sim.answers import ModelRequest, SimulatedAnswer
from scoreline.provider_sim.http_messages import ApiError, Json
from scoreline.provider_sim.limits import BucketStatus


class ProviderApi(Protocol):
    """Parses requests and formats replies of one API."""

    endpoint: str
    request_id_header: str
    overloaded: ApiError
    broken: ApiError

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Refuse a request for its headers."""

    def read(self, params: Json) -> ModelRequest:
        """Understand a request, or refuse it."""

    def whole(
        self, request: ModelRequest, answer: SimulatedAnswer, *, name: str, created: int
    ) -> dict[str, Any]:
        """Answer at once."""

    def stream(
        self, request: ModelRequest, answer: SimulatedAnswer, *, name: str, created: int
    ) -> Iterator[bytes]:
        """Answer in events."""

    def stream_error(self) -> bytes:
        """Return the event of an error within a stream."""

    def error(self, refused: ApiError, request_id: str) -> dict[str, Any]:
        """Refuse."""

    def limit_headers(self, statuses: Mapping[str, BucketStatus], now: datetime) -> dict[str, str]:
        """Return the rate limit headers."""
