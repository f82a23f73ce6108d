"""What a dialect must be able to say."""

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any, Protocol

from scoreline.provider_sim.answers import Ask, Said
from scoreline.provider_sim.limits import Standing
from scoreline.provider_sim.wire import Json, Refused


class Dialect(Protocol):
    """One way of asking and answering."""

    endpoint: str
    request_id_header: str
    overloaded: Refused
    broken: Refused

    def check_headers(self, headers: Mapping[str, str]) -> None:
        """Refuse a request for its headers."""

    def read(self, params: Json) -> Ask:
        """Understand a request, or refuse it."""

    def whole(self, ask: Ask, said: Said, *, name: str, created: int) -> dict[str, Any]:
        """Answer at once."""

    def stream(self, ask: Ask, said: Said, *, name: str, created: int) -> Iterator[bytes]:
        """Answer in events."""

    def stream_error(self) -> bytes:
        """Say in the middle of a stream that it won't go on."""

    def error(self, refused: Refused, request_id: str) -> dict[str, Any]:
        """Refuse."""

    def limit_headers(self, standings: Mapping[str, Standing], now: datetime) -> dict[str, str]:
        """Say how the limits stand."""
