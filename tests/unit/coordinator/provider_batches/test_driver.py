"""Answers from provider batches: which requests are submitted, how results are recorded, operations."""

from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import pytest

from coordinator.attempts import AttemptFactory
from coordinator.operations import OperationRejected
from coordinator.provider_batches.memory import echo
from coordinator.provider_batches.outcomes import CollectionRun, record
from coordinator.provider_batches.provider import Errored, NoResponse, NotProcessed, SubmissionRejected
from coordinator.provider_batches.requests import custom_id, is_asked_in, number_in, unfit
from domain.batch_spec import BatchFallback, BatchSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.lifecycle import Phase
from eventlog.timeline import Cursor
from projections.folds.change import EvaluationRow
from projections.ledger.contract import EvaluationState
from projections.ledger.provider_batches import ProviderBatch
from tests.builders import START, history
from tests.unit.coordinator.provider_batches.harness import (
    COST,
    SPEC,
    B,
    Harness,
    a_harness,
    cases,
    with_fallback,
)

KNOWN = p.Answer(output="4")
RECORDED = TargetSpec("recorded", "recorded:answers.jsonl", {"path": "answers.jsonl"})


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


async def test_only_evaluations_without_an_answer_are_requested() -> None:
    """Evaluations with a recorded answer are published to executors at once."""
    harness = await a_harness(evaluations=cases(4, _2=KNOWN))
    await harness.run_cycle(3)
    assert [task.evaluation_id for task in await harness.tasks()] == [f"{B}.00000002"]
    assert harness.asked() == {1: 1, 3: 1, 4: 1}
    assert harness.phases() == ["1 queued"] * 4


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


async def test_a_prompt_that_can_not_be_rendered_fails_only_its_evaluation() -> None:
    """It is never submitted, and the others are answered."""
    harness = await a_harness(2, spec=replace(SPEC, prompts=("{id}", "{nothing}")), evaluations=[
        *cases(1), replace(cases(1)[0], variant=1),
    ])  # fmt: skip
    await answered(harness)
    assert harness.phases() == ["2 queued", "1 failed"]
    assert harness.asked() == {1: 1}


async def test_provider_batches_are_bounded_in_requests_and_bytes() -> None:
    """Either limit alone splits the requests."""
    harness = await a_harness(7, max_requests=3)
    await harness.run_cycle(6)
    assert [provider_batch.size for provider_batch in harness.repository.provider_batches.values()] == [
        3,
        3,
        1,
    ]
    largest = next(iter(harness.repository.provider_batches.values())).bytes
    harness = await a_harness(7, max_requests=100, max_bytes=largest)
    await harness.run_cycle(6)
    assert [provider_batch.size for provider_batch in harness.repository.provider_batches.values()] == [
        3,
        3,
        1,
    ]
    assert len({provider_batch.id for provider_batch in harness.repository.provider_batches.values()}) == 3


async def test_results_are_collected_only_while_the_window_has_room() -> None:
    """No more than a window of answers is published to executors."""
    harness = await a_harness(9, window=4, page_size=2, max_requests=9)
    await answered(harness)
    assert harness.phases().count("2 queued") == 4
    assert len(await harness.tasks()) == 4
    [provider_batch] = harness.repository.provider_batches.values()
    assert provider_batch.state == "ended"


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


async def test_targets_without_a_batch_api_are_rejected() -> None:
    """The message names the target; recorded answers are allowed beside."""
    http = TargetSpec("http", "https://example.org", {})
    assert unfit(replace(SPEC, targets=(*SPEC.targets, RECORDED))) is None
    assert "https://example.org" in (unfit(replace(SPEC, targets=(http,))) or "")
    harness = await a_harness(1, spec=BatchSpec("a batch", (http,)))
    with pytest.raises(OperationRejected, match=r"https://example\.org"):
        await harness.operator.ask_in_batches(B, BatchFallback.SYNC)


def test_request_ids_contain_their_provider_batch() -> None:
    """A result is attributed by its id, in characters that the provider allows."""
    provider_batch = ProviderBatch("0123456789abcdef", B, 0, (7,), (1,), 1, "", START, START)
    assert custom_id(provider_batch.id, 7) == "0123456789abcdef-00000007"
    assert number_in(provider_batch, custom_id(provider_batch.id, 123_456_789)) == 123_456_789
    for other in ("fedcba9876543210-00000007", "7", "0123456789abcdef-7", ""):
        assert number_in(provider_batch, other) is None


def test_only_openings_without_an_answer_are_requested() -> None:
    """The batch must use provider batches, and the target's provider must have them."""
    opening = p.Queued(case=p.Case(id="a"))
    spec = replace(SPEC, targets=(*SPEC.targets, RECORDED))
    is_asked = is_asked_in(spec)
    assert is_asked(opening)
    assert not is_asked(replace(opening, answer=KNOWN))
    assert not is_asked(replace(opening, variant=1))
    assert not is_asked(replace(opening, in_group=True))
    assert not is_asked_in(replace(spec, batch_api=None))(opening)


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
