"""Which batches still need the answers of their provider batches."""

import pytest

from coordinator.provider_batches.context import is_cancelled
from tests.batches import changed
from tests.unit.coordinator.provider_batches.harness import B, a_harness


@pytest.mark.parametrize(
    ("state", "cancelled"),
    [("running", False), ("paused", False), ("completed", False), ("cancelled", True), ("expired", True)],
)
async def test_only_an_ended_batch_needs_no_answers(state, cancelled):
    """A paused batch still collects: its answers are paid."""
    harness = await a_harness(1)
    batch = await harness.ledger.batch(B)
    assert batch is not None
    assert is_cancelled(changed(batch, state=state)) == cancelled


def test_a_deleted_batch_needs_no_answers():
    """No row can hold them."""
    assert is_cancelled(None)
