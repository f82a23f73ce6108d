"""Results are collected within the window of a batch."""

from tests.unit.coordinator.provider_batches.batch_results import answered
from tests.unit.coordinator.provider_batches.harness import (
    a_harness,
)


async def test_results_are_collected_only_while_the_window_has_room() -> None:
    """No more than a window of answers is published to executors."""
    harness = await a_harness(9, window=4, page_size=2, max_requests=9)
    await answered(harness)
    assert harness.phases().count("2 queued") == 4
    assert len(await harness.tasks()) == 4
    [provider_batch] = harness.repository.provider_batches.values()
    assert provider_batch.state == "ended"
