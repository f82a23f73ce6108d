"""Metrics and spans of provider batches, without servers."""

from typing import Any

import pytest

from coordinator.provider_batches.memory import echo
from coordinator.provider_batches.provider import Errored, NotProcessed
from tests.telemetry import measuring, tracing_spans
from tests.unit.coordinator.provider_batches.harness import COST, Harness, a_harness

A = "anthropic"
FAULTS = {
    2: Errored("invalid_request_error", "too much"),
    3: NotProcessed("expired"),
    4: NotProcessed("canceled"),
}


def outcome(request: dict[str, Any]) -> Any:
    """Answer the first request, and fail each other one in its own way."""
    return FAULTS.get(int(request["custom_id"].rpartition("-")[2])) or echo(request)


async def collected(harness: Harness) -> None:
    """Process one submission at the provider, and collect all results."""
    await harness.run_cycle(3)
    harness.provider.finish()
    await harness.run_cycle(3)


async def test_results_are_counted_by_outcome() -> None:
    """Each result counts once, and the saved cost equals the discount."""
    harness = await a_harness(4)
    harness.provider.outcome = outcome
    with measuring() as measured:
        await collected(harness)
    requests = "eval_batch_api_requests_total"
    for kind in ("succeeded", "errored", "expired", "canceled"):
        assert measured[requests, kind, A] == 1
    assert measured["eval_batch_api_saved_usd_total", A] == pytest.approx(COST)
    assert measured["eval_cost_usd_total"] == pytest.approx(COST)
    assert measured["eval_tokens_total"] == 12
    # Three requests fit into one; unanswered ones are submitted again in another.
    assert measured["eval_batch_api_submitted_total", A] == 3
    assert measured.count("eval_batch_api_poll_duration_seconds", A) == 2
    assert measured.sum("eval_batch_api_poll_duration_seconds", A) > 0
    assert measured["eval_coordinator_opened_total", "scoring"] == 1
    assert measured["eval_coordinator_opened_total", "retry"] == 2
    assert measured["eval_batch_tests_failed_total"] == 1


async def test_a_provider_batch_is_traced_from_submission_to_its_results() -> None:
    """Its spans are not part of an evaluation's trace, because it has many evaluations."""
    harness = await a_harness(3)
    with tracing_spans() as spans:
        await collected(harness)
    about = {
        name: dict(span.attributes or {}) for span in spans if (name := span.name).startswith("eval.batch")
    }
    submitted, polled = about["eval.batch_api.submit"], about["eval.batch_api.poll"]
    assert (submitted["batch_id"], submitted["request_count"]) == ("nightly", 3)
    assert polled == {"provider_batch_id": submitted["provider_batch_id"], "status": "ended"}
    assert about["eval.batch_api.process_results"] == {"batch_id": "nightly", "result_count": 3}


async def test_a_result_that_is_read_again_is_counted_once() -> None:
    """With a full window, the remaining results are read later from the start of the file."""
    harness = await a_harness(5, window=2)
    with measuring() as measured:
        await collected(harness)
    assert measured["eval_batch_api_requests_total", "succeeded", A] == 2
