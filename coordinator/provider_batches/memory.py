"""A provider in memory with injected faults, on the same contract, for unit tests and simulation."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from coordinator.provider_batches.provider import (
    BatchResult,
    NoResponse,
    NotProcessed,
    ProviderRequestFailed,
    RemoteBatchStatus,
    SubmissionRejected,
    Succeeded,
)
from projections.ledger.provider_batches import RequestCounts

Outcome = Callable[[dict[str, Any]], Any]
"""Returns the outcome of a request."""


@dataclass(slots=True)
class StoredBatch:
    """One batch at the provider."""

    provider_id: str
    created_at: datetime
    requests: list[dict[str, Any]]
    results: list[BatchResult] | None = None
    is_canceling: bool = False


def echo(request: dict[str, Any]) -> Succeeded:
    """Answer with the last message of the request."""
    last = request["params"]["messages"][-1]["content"]
    usage = {"input_tokens": 10, "output_tokens": 2}
    content = [{"type": "text", "text": last}]
    return Succeeded({"content": content, "usage": usage, "stop_reason": "end_turn"})


@dataclass(slots=True)
class MemoryProvider:
    """`BatchProvider` without a network: batches end when `finish` is called."""

    now: Callable[[], datetime]
    outcome: Outcome = echo
    batches: dict[str, StoredBatch] = field(default_factory=dict)
    create_errors: list[ProviderRequestFailed] = field(default_factory=list)
    """Raised by the next calls of `create`, before a batch is created."""
    lost_responses: int = 0
    """How many of the next calls of `create` create a batch and return no response."""

    async def create(self, body: AsyncIterator[bytes], *, length: int) -> RemoteBatchStatus:
        """Create a batch, if its body is complete."""
        if self.create_errors:
            raise self.create_errors.pop(0)
        whole = b"".join([piece async for piece in body])
        if len(whole) != length:
            raise SubmissionRejected(f"{len(whole)} bytes came, {length} were announced")
        held = StoredBatch(
            f"msgbatch_{len(self.batches) + 1:04}", self.now(), json.loads(whole)["requests"]
        )
        self.batches[held.provider_id] = held
        if self.lost_responses:
            self.lost_responses -= 1
            raise NoResponse("the connection was lost")
        return self._seen(held)

    async def retrieve(self, provider_id: str) -> RemoteBatchStatus:
        """Return the status of a batch."""
        return self._seen(self.batches[provider_id])

    async def list(self, *, since: datetime) -> AsyncGenerator[RemoteBatchStatus, None]:
        """List batches, the newest first."""
        for held in sorted(self.batches.values(), key=lambda held: held.created_at, reverse=True):
            if held.created_at >= since:
                yield self._seen(held)

    async def results(self, provider_id: str) -> AsyncGenerator[BatchResult, None]:
        """Yield the results, the last one first."""
        held = self.batches[provider_id]
        if held.results is None:
            raise SubmissionRejected("it has not ended", is_passing=True)
        for result in reversed(held.results):
            yield result

    async def cancel(self, provider_id: str) -> None:
        """Request cancellation of a batch that has not ended."""
        held = self.batches[provider_id]
        if held.results is not None:
            raise SubmissionRejected("it has ended")
        held.is_canceling = True

    def finish(self) -> int:
        """End all batches that have not ended; returns how many."""
        ending = [held for held in self.batches.values() if held.results is None]
        for held in ending:
            held.results = [
                BatchResult(each["custom_id"], self._outcome(held, each)) for each in held.requests
            ]
        return len(ending)

    def _outcome(self, held: StoredBatch, request: dict[str, Any]) -> Any:  # noqa: ANN401 - one of three
        return NotProcessed("canceled") if held.is_canceling else self.outcome(request)

    @staticmethod
    def _seen(held: StoredBatch) -> RemoteBatchStatus:
        if held.results is None:
            counts = RequestCounts(processing=len(held.requests))
        else:
            succeeded = sum(isinstance(each.outcome, Succeeded) for each in held.results)
            unanswered = sum(isinstance(each.outcome, NotProcessed) for each in held.results)
            errored = len(held.results) - succeeded - unanswered
            counts = RequestCounts(succeeded=succeeded, expired=unanswered, errored=errored)
        return RemoteBatchStatus(held.provider_id, held.created_at, counts, held.results is not None)
