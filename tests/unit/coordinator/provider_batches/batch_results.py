"""Results of provider batches."""

from typing import Any

from coordinator.provider_batches.memory import echo
from eventlog import payloads as p
from tests.unit.coordinator.provider_batches.harness import (
    Harness,
)

KNOWN = p.Answer(output="4")


async def answered(harness: Harness, rounds: int = 12) -> Harness:
    """Run cycles until the provider has answered every request."""
    for _ in range(rounds):
        await harness.run_cycle(2)
        harness.provider.finish()
    return harness


def failing(numbers: set[int], fault: Any) -> Any:
    """Return a provider that fails some evaluations."""

    def outcome(request: dict[str, Any]) -> Any:
        number = int(request["custom_id"].rpartition("-")[2])
        return fault if number in numbers else echo(request)

    return outcome
