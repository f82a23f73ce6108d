"""Submission of provider batches."""

from datetime import timedelta

from coordinator.provider_batches.provider import SubmissionRejected
from tests.unit.coordinator.provider_batches.batch_results import answered
from tests.unit.coordinator.provider_batches.harness import (
    B,
    a_harness,
)


async def test_a_rejected_submission_pauses_the_batch_with_the_message() -> None:
    """Nothing is lost: after a resume the requests are submitted."""
    harness = await a_harness(3)
    harness.provider.create_errors = [
        SubmissionRejected("Anthropic needs a key: ANTHROPIC_API_KEY is not set")
    ]
    await harness.run_cycle(2)
    batch = await harness.operator.batch(B)
    assert (batch.state, "ANTHROPIC_API_KEY" in batch.reason) == ("paused", True)
    await harness.operator.resume(B)
    await answered(harness)
    assert harness.phases() == ["2 queued"] * 3


async def test_a_busy_provider_is_retried_later() -> None:
    """The retry waits at least for Retry-After, and the batch stays running."""
    harness = await a_harness(3)
    busy = SubmissionRejected("busy", retry_after=timedelta(minutes=2), is_passing=True)
    harness.provider.create_errors = [busy]
    await harness.run_cycle(4)
    assert harness.provider.batches == {}
    assert (await harness.operator.batch(B)).state == "running"
    await answered(harness)
    assert harness.phases() == ["2 queued"] * 3
