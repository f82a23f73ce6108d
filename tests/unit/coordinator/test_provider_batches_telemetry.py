"""What is counted and traced of provider batches, without servers."""

from typing import Any

import pytest

from coordinator.provider_batches.memory import echo
from coordinator.provider_batches.provider import Errored, NotProcessed
from tests.telemetry import measuring, tracing_spans
from tests.unit.coordinator.provider_batch_stage import COST, Stage, a_stage

A = "anthropic"
FAULTS = {
    2: Errored("invalid_request_error", "too much"),
    3: NotProcessed("expired"),
    4: NotProcessed("canceled"),
}


def outcome(request: dict[str, Any]) -> Any:
    """Be a provider that answers the first, and fails the others in ways of their own."""
    return FAULTS.get(int(request["custom_id"].rpartition("-")[2])) or echo(request)


async def collected(stage: Stage) -> None:
    """Let the provider do what it is asked once, and have all of it read."""
    await stage.run_cycle(3)
    stage.provider.finish()
    await stage.run_cycle(3)


async def test_results_are_counted_by_what_became_of_them() -> None:
    """Each once; what the answer would have cost besides is what was saved, and what it cost is counted."""
    stage = await a_stage(4)
    stage.provider.outcome = outcome
    with measuring() as measured:
        await collected(stage)
    requests = "eval_batch_api_requests_total"
    for kind in ("succeeded", "errored", "expired", "canceled"):
        assert measured[requests, kind, A] == 1
    assert measured["eval_batch_api_saved_usd_total", A] == pytest.approx(COST)
    rounding = measured.resolution("eval_cost_usd_total")
    assert measured["eval_cost_usd_total"] == pytest.approx(COST, abs=rounding)
    assert measured["eval_tokens_total"] == 12
    # Three fit into one; what was not answered is asked again in another.
    assert measured["eval_batch_api_submitted_total", A] == 3
    assert measured.count("eval_batch_api_poll_duration_seconds", A) == 2
    assert measured.sum("eval_batch_api_poll_duration_seconds", A) > 0
    assert measured["eval_coordinator_opened_total", "scoring"] == 1
    assert measured["eval_coordinator_opened_total", "retry"] == 2
    assert measured["eval_batch_tests_failed_total"] == 1


async def test_a_provider_batch_is_traced_from_submission_to_its_results() -> None:
    """In spans of their own: it is of many evaluations."""
    stage = await a_stage(3)
    with tracing_spans() as spans:
        await collected(stage)
    about = {
        name: dict(span.attributes or {}) for span in spans if (name := span.name).startswith("eval.batch")
    }
    submitted, polled = about["eval.batch_api.submit"], about["eval.batch_api.poll"]
    assert (submitted["batch_id"], submitted["request_count"]) == ("nightly", 3)
    assert polled == {"provider_batch_id": submitted["provider_batch_id"], "status": "ended"}
    assert about["eval.batch_api.process_results"] == {"batch_id": "nightly", "result_count": 3}


async def test_a_spent_word_of_the_provider_is_counted_once_though_read_again() -> None:
    """Executors have no room for all: the rest is read later, from the start."""
    stage = await a_stage(5, window=2)
    with measuring() as measured:
        await collected(stage)
    assert measured["eval_batch_api_requests_total", "succeeded", A] == 2
