"""Answers from provider batches: which requests are submitted, how results are recorded, operations."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.provider_batches.memory import echo
from coordinator.provider_batches.provider import Errored, NoResponse, NotProcessed, SubmissionRejected
from domain.batch_spec import BatchFallback
from tests.unit.coordinator.provider_batches.batch_results import answered, failing
from tests.unit.coordinator.provider_batches.harness import (
    COST,
    SPEC,
    B,
    a_harness,
)


async def test_an_answer_is_recorded_and_opens_an_attempt_for_scoring() -> None:
    """The events are those an executor would append, and the cost is half."""
    harness = await answered(await a_harness(1))
    assert harness.events(1) == ["1 queued", "1 provisioning", "1 running", "1 responded", "2 queued"]
    opening = await harness.opening(1)
    assert opening.answer
    assert opening.answer.cost_usd == pytest.approx(COST)
    assert opening.retries == SPEC.retries
    assert harness.total().retried == 0
    assert float(harness.total().cost_usd) == pytest.approx(COST)


async def test_a_paused_batch_submits_nothing_and_collects_results() -> None:
    """Submitted requests are paid, so their results are recorded."""
    harness = await a_harness(5)
    await harness.run_cycle()
    await harness.operator.pause(B)
    await answered(harness)
    assert harness.phases() == [*["2 queued"] * 3, *["1 queued"] * 2]
    assert len(harness.provider.batches) == 1
    await harness.operator.resume(B)
    await answered(harness)
    assert harness.phases() == ["2 queued"] * 5


async def test_answers_of_a_cancelled_batch_are_counted() -> None:
    """Answers given before the cancellation are stored as late, with their cost, once."""
    harness = await a_harness(3)
    await harness.run_cycle(2)
    harness.provider.finish()
    await harness.operator.cancel(B)
    assert harness.phases() == ["2 cancelled"] * 3
    await harness.run_cycle(4)
    assert harness.events(1) == ["1 queued", "1 responded (late)", "2 cancelled"]
    assert float(harness.total().cost_usd) == pytest.approx(3 * COST)
    await harness.run_cycle(4)
    assert float(harness.total().cost_usd) == pytest.approx(3 * COST)
    assert [provider_batch.state for provider_batch in harness.repository.provider_batches.values()] == [
        "cancelled"
    ]


async def test_cancel_requests_cancellation_at_the_provider() -> None:
    """The operation itself sends the request, before the next cycle."""
    harness = await a_harness(3)
    await harness.run_cycle(2)
    await harness.operator.cancel(B)
    [held] = harness.provider.batches.values()
    assert held.is_canceling
    harness.provider.finish()
    await harness.run_cycle(4)
    assert [provider_batch.state for provider_batch in harness.repository.provider_batches.values()] == [
        "cancelled"
    ]
    assert harness.phases() == ["2 cancelled"] * 3


async def test_a_foreign_batch_of_the_same_size_is_not_adopted() -> None:
    """Recovery waits for its end, and rules it out by the ids of its results."""
    harness = await a_harness(3)
    harness.provider.create_errors = [NoResponse("no connection")]
    await harness.run_cycle(1)
    body = b'{"requests":[{"custom_id":"a"},{"custom_id":"b"},{"custom_id":"c"}]}'

    async def others() -> Any:
        yield body

    await harness.provider.create(others(), length=len(body))
    await harness.run_cycle(12)
    assert "may be it" in harness.note()
    assert len(harness.provider.batches) == 1
    harness.provider.outcome = lambda request: (
        echo(request) if "params" in request else NotProcessed("expired")
    )
    await answered(harness)
    assert harness.phases() == ["2 queued"] * 3


async def test_an_unconfirmed_submission_has_time_to_appear() -> None:
    """The provider's list may lag, so nothing is submitted again before the margin is over."""
    harness = await a_harness(3)
    harness.provider.lost_responses = 1
    await harness.run_cycle(1)
    unlisted, harness.provider.batches = harness.provider.batches, {}
    await harness.run_cycle(4)
    assert harness.provider.batches == {}
    assert "waiting for it to appear" in harness.note()
    harness.provider.batches = unlisted
    await answered(harness)
    assert (harness.phases(), len(harness.provider.batches)) == (["2 queued"] * 3, 1)


async def test_unpublished_evaluations_can_move_to_provider_batches() -> None:
    """With --batch-api a resume moves unpublished evaluations; consumed ones stay with executors."""
    harness = await a_harness(6, spec=replace(SPEC, batch_api=None), window=2, page_size=2)
    await harness.run_cycle(2)
    assert len(await harness.tasks()) == 2
    moved = await harness.operator.ask_in_batches(B, BatchFallback.RESUBMIT)
    assert (moved.to_providers, moved.withdrawn, moved.to_executors) == (4, 0, True)
    harness.coordinator.settings = replace(harness.settings, window=100)
    await harness.run_cycle(6)
    assert sorted(harness.asked()) == [3, 4, 5, 6]


async def test_unassigned_requests_can_return_to_executors() -> None:
    """With --no-batch-api a resume publishes every evaluation without a provider batch."""
    harness = await a_harness(5)
    harness.provider.create_errors = [SubmissionRejected("no")]
    await harness.run_cycle(1)
    await harness.operator.ask_in_batches(B, None)
    await harness.operator.resume(B)
    await harness.run_cycle(3)
    assert len(await harness.tasks()) == 5
    assert harness.provider.batches == {}


async def test_a_retried_dead_letter_is_requested_in_a_provider_batch() -> None:
    """An operator's retry uses provider batches if its batch does."""
    harness = await a_harness(2)
    harness.provider.outcome = failing({2}, Errored("invalid_request_error", "no"))
    await answered(harness)
    harness.provider.outcome = echo
    assert await harness.operator.retry(B) == 1
    await answered(harness)
    assert harness.phases() == ["2 queued", "3 queued"]
    assert harness.asked() == {1: 1, 2: 2}


async def test_provider_batches_of_another_run_are_not_processed() -> None:
    """The keys are in that run's environment: other coordinators neither submit, poll nor collect."""
    harness = await a_harness(2)
    await harness.ledger.assign_run(B, "run-1", by="ada")
    await harness.run_cycle(3)
    assert harness.asked() == {}
    fleet, harness.settings = harness.coordinator, replace(harness.settings, run_id="run-1")
    harness.coordinator = own = harness.another()
    await harness.run_cycle(3)
    assert harness.asked() == {1: 1, 2: 1}
    harness.provider.finish()
    harness.coordinator = fleet
    await harness.run_cycle(5)
    assert harness.phases() == ["1 queued"] * 2
    harness.coordinator = own
    await answered(harness)
