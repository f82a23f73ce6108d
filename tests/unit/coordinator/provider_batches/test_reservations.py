"""Provider batches with a budget: their size follows the reservation, and results settle it."""

from decimal import Decimal

import pytest

from projections.ledger.batch import Batch
from tests.unit.coordinator.provider_batches.harness import COST, B, Harness, a_harness


async def rounds(harness: Harness, times: int) -> None:
    """Run cycles in which the provider answers every request."""
    for _ in range(times):
        await harness.run_cycle(2)
        harness.provider.finish()
        await harness.run_cycle(2)


def sizes(harness: Harness) -> list[int]:
    return [len(held.requests) for held in harness.provider.batches.values()]


async def test_a_provider_batch_is_as_large_as_its_reservation() -> None:
    """Two of the longest answers fit; once the cost is known, all others fit together."""
    harness = await a_harness(5, max_cost_usd=Decimal("0.12"))
    await harness.run_cycle(2)
    assert sizes(harness) == [2]
    [provider_batch] = harness.repository.provider_batches.values()
    assert 100_000_000 < provider_batch.reserved_cost < 120_000_000
    await rounds(harness, 3)
    assert (sizes(harness), harness.asked()) == ([2, 3], dict.fromkeys(range(1, 6), 1))
    assert float(harness.total().cost_usd) == pytest.approx(5 * COST)
    assert (await _batch(harness)).state == "running"


async def test_a_budget_without_room_for_a_request_pauses_the_batch() -> None:
    """Single requests are submitted until none fits; then the batch pauses with the reason."""
    harness = await a_harness(5, max_cost_usd=Decimal("0.0004"))
    await rounds(harness, 6)
    await harness.run_cycle(4)
    batch = await _batch(harness)
    assert (sizes(harness), batch.state) == ([1, 1], "paused")
    assert batch.reason == "budget $0.0004: $0.0003 spent, the next call may cost up to $0.00015"
    await harness.operator.resume(B, budget={"max_cost_usd": Decimal(1)})
    await rounds(harness, 4)
    assert harness.asked() == dict.fromkeys(range(1, 6), 1)


async def _batch(harness: Harness) -> Batch:
    found = await harness.ledger.batch(B)
    assert found
    return found
