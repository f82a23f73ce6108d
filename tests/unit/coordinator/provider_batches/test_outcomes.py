"""The outcome of each result of a provider batch."""

from datetime import date
from typing import Any

import pytest

from coordinator.attempts import AttemptFactory
from coordinator.provider_batches.outcomes import CollectionRun, record
from coordinator.provider_batches.provider import Errored, NotProcessed
from domain.batch_spec import BatchFallback
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow
from projections.ledger.contract import EvaluationState
from projections.ledger.provider_batches import ProviderBatch
from tests.builders import START, history
from tests.unit.coordinator.provider_batches.batch_results import answered, failing
from tests.unit.coordinator.provider_batches.harness import (
    SPEC,
    B,
    a_harness,
    with_fallback,
)


async def test_an_invalid_request_fails_at_once() -> None:
    """The evaluation fails with the provider's error message, and is not retried."""
    harness = await a_harness(3)
    harness.provider.outcome = failing({2}, Errored("invalid_request_error", "max_tokens: too much"))
    await answered(harness)
    assert harness.phases() == ["2 queued", "1 failed", "2 queued"]
    [card] = harness.tables.scorecards.values()
    assert b"max_tokens: too much" in (card.error or b"")
    assert harness.asked() == {1: 1, 2: 1, 3: 1}


@pytest.mark.parametrize(
    "fault",
    [
        Errored("overloaded_error", "busy"),
        Errored("api_error", "oh"),
        *map(NotProcessed, ("expired", "canceled")),
    ],
)
async def test_an_unanswered_request_is_retried_and_charged(fault: Any) -> None:
    """Each retry is in another provider batch, until no retry is left."""
    harness = await a_harness(3, spec=with_fallback(BatchFallback.RESUBMIT, retries=2))
    harness.provider.outcome = failing({2}, fault)
    await answered(harness)
    assert harness.phases() == ["2 queued", "3 failed", "2 queued"]
    assert harness.asked() == {1: 1, 2: 3, 3: 1}
    once = ["provisioning", "running", "retrying"]
    assert harness.events(2) == [
        *("1 queued", *(f"1 {word}" for word in once)),
        *("2 queued", *(f"2 {word}" for word in once)),
        *("3 queued", "3 provisioning", "3 running", "3 failed"),
    ]
    assert harness.total().retried == 2


async def test_an_unanswered_request_falls_back_to_executors() -> None:
    """With `--batch-fallback sync` it becomes an ordinary task."""
    spec = with_fallback(BatchFallback.SYNC)
    harness = await a_harness(2, spec=spec)
    harness.provider.outcome = failing({2}, NotProcessed("expired"))
    await answered(harness)
    assert harness.phases() == ["2 queued", "2 queued"]
    assert harness.asked() == {1: 1, 2: 1}
    opening = await harness.opening(2)
    assert (opening.answer, opening.retries, opening.epoch != "") == (None, 1, True)
    assert {task.evaluation_id[-1] for task in await harness.tasks(spec)} == {"1", "2"}


async def test_a_missing_result_counts_as_unanswered() -> None:
    """A request without a result in an ended provider batch is retried."""
    harness = await a_harness(2)
    await harness.run_cycle(2)
    harness.provider.finish()
    [held] = harness.provider.batches.values()
    assert held.results
    del held.results[0]
    await answered(harness)
    assert harness.phases() == ["3 queued", "2 queued"]
    assert harness.asked() == {1: 2, 2: 1}


@pytest.mark.parametrize(
    ("stands", "is_recorded"),
    [
        (Cursor(1, 0, Phase.QUEUED), True),
        (Cursor(2, 0, Phase.QUEUED), False),
        (Cursor(1, 3, Phase.RESPONDED), False),
    ],
)
def test_a_result_that_is_read_again_changes_nothing(stands: Cursor, is_recorded: bool) -> None:
    """Of two coordinators that read the same result, the second finds another cursor in the row."""
    key = evaluation_id(B, 1)
    this = CollectionRun(ProviderBatch("0" * 16, B, 0, (1,), (1,), 0, "", START, START), SPEC, {key: 1})
    decide = record(lambda _: AttemptFactory("coordinator", START, "epoch"), {key: p.Answer("4")}, this)
    [opening] = history("queued", evaluation_id=key)
    row = EvaluationRow(key, B, date(2026, 1, 1), stands)
    decided = decide(EvaluationState(row, "", published=False), {opening.key: opening})
    assert (decided is not None) == is_recorded
