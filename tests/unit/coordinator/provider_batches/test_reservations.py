"""Provider batches with a budget: their size follows the reservation, and results settle it."""

from decimal import Decimal

import pytest

from projections.ledger.contract import Batch
from tests.unit.coordinator.provider_batches.provider_batch_stage import COST, B, Stage, a_stage


async def rounds(stage: Stage, times: int) -> None:
    """Run cycles in which the provider answers every request."""
    for _ in range(times):
        await stage.run_cycle(2)
        stage.provider.finish()
        await stage.run_cycle(2)


def sizes(stage: Stage) -> list[int]:
    return [len(held.requests) for held in stage.provider.batches.values()]


async def test_a_provider_batch_is_as_large_as_its_reservation() -> None:
    """Two of the longest answers fit; once the cost is known, all others fit together."""
    stage = await a_stage(5, max_cost_usd=Decimal("0.12"))
    await stage.run_cycle(2)
    assert sizes(stage) == [2]
    [provider_batch] = stage.repository.provider_batches.values()
    assert 100_000_000 < provider_batch.reserved_cost < 120_000_000
    await rounds(stage, 3)
    assert (sizes(stage), stage.asked()) == ([2, 3], dict.fromkeys(range(1, 6), 1))
    assert float(stage.total().cost_usd) == pytest.approx(5 * COST)
    assert (await _batch(stage)).state == "running"


async def test_a_budget_without_room_for_a_request_pauses_the_batch() -> None:
    """Single requests are submitted until none fits; then the batch pauses with the reason."""
    stage = await a_stage(5, max_cost_usd=Decimal("0.0004"))
    await rounds(stage, 6)
    await stage.run_cycle(4)
    batch = await _batch(stage)
    assert (sizes(stage), batch.state) == ([1, 1], "paused")
    assert batch.reason == "budget $0.0004: $0.0003 spent, the next call may cost up to $0.00015"
    await stage.operator.resume(B, budget={"max_cost_usd": Decimal(1)})
    await rounds(stage, 4)
    assert stage.asked() == dict.fromkeys(range(1, 6), 1)


async def _batch(stage: Stage) -> Batch:
    found = await stage.ledger.batch(B)
    assert found
    return found
