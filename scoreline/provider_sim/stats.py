"""Counts of received calls, for tests of the clients."""

from collections import Counter, deque
from dataclasses import dataclass, field
from typing import Any

_KEPT = 1_000
_MOST_REQUESTS = 1_000_000


@dataclass(slots=True)
class CallStats:
    """Counts of all calls."""

    calls: Counter[tuple[str, str]] = field(default_factory=Counter)
    """By endpoint and status; a connection broken off counts under the name of the fault."""
    admitted: Counter[int] = field(default_factory=Counter)
    """Admitted calls in each second since the start."""
    faults: Counter[str] = field(default_factory=Counter)
    bodies: deque[dict[str, Any]] = field(default_factory=lambda: deque(maxlen=_KEPT), repr=False)
    """The last valid calls, with their content."""
    visits: Counter[int] = field(default_factory=Counter, repr=False)
    answered: Counter[int] = field(default_factory=Counter, repr=False)
    input_tokens: int = 0
    output_tokens: int = 0
    asked_in_batches: Counter[int] = field(default_factory=Counter, repr=False)
    batches_created: int = 0
    batch_requests: int = 0
    in_flight: int = 0
    max_in_flight: int = 0

    def of(self, endpoint: str, status: int | str | None = None) -> int:
        """Count the calls of an endpoint, of one status or of all."""
        wanted = None if status is None else str(status)
        return sum(
            n for (e, s), n in self.calls.items() if e == endpoint and (wanted is None or s == wanted)
        )

    def visited(self, digest: int) -> int:
        """Count a request; returns how often it has been received, this time included."""
        if len(self.visits) > _MOST_REQUESTS:
            self.visits.clear()
            self.answered.clear()
        self.visits[digest] += 1
        return self.visits[digest]

    def began(self) -> None:
        """Count a call in flight."""
        self.in_flight += 1
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def ended(self) -> None:
        """A call is over."""
        self.in_flight -= 1

    def answer(self, digest: int, input_tokens: int, output_tokens: int) -> None:
        """A call was answered as it should be."""
        self.answered[digest] += 1
        self.input_tokens += input_tokens
        self.output_tokens += output_tokens

    def created_batch(self, digests: list[int]) -> None:
        """Count a created batch and its requests."""
        self.batches_created += 1
        self.batch_requests += len(digests)
        self.asked_in_batches.update(digests)

    def forget(self) -> None:
        """Reset; calls in flight stay."""
        under_way = self.in_flight
        for each in (
            self.calls,
            self.admitted,
            self.faults,
            self.bodies,
            self.visits,
            self.answered,
            self.asked_in_batches,
        ):
            each.clear()
        self.input_tokens = self.output_tokens = self.batches_created = self.batch_requests = 0
        self.in_flight = self.max_in_flight = under_way

    def listed(self) -> dict[str, object]:
        """Write it down."""
        by_endpoint: dict[str, dict[str, int]] = {}
        for (endpoint, status), number in sorted(self.calls.items()):
            by_endpoint.setdefault(endpoint, {})[status] = number
        return {
            "calls": by_endpoint,
            "admitted": sum(self.admitted.values()),
            "admitted_per_second": {str(second): n for second, n in sorted(self.admitted.items())},
            "answered_again": sum(self.answered.values()) - len(self.answered),
            "faults": dict(self.faults),
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "batches_created": self.batches_created,
            "batch_requests": self.batch_requests,
            "batch_requests_again": sum(self.asked_in_batches.values()) - len(self.asked_in_batches),
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
        }
