"""Batches that pause by themselves: their budget is spent, or everything in them fails."""

from collections.abc import AsyncIterator
from dataclasses import replace
from decimal import Decimal

import pytest

from coordinator.operations import OperationRejected
from coordinator.submission import NewEvaluation, Recall, SerialPlace
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.event_queue import AttemptLost
from taskqueue.batch_registry import BatchState
from tests.integration.coordinator.coordinating import ANSWER, SPEC, House, house
from tests.integration.scoreline.batch_harness import Harness, harness
from tests.waiting import until

IMPATIENT = replace(SPEC, fail_fast_after=3)
ALL_FAIL = dict.fromkeys(range(1, 100), "failed")


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url, window=4, page_size=4) as lent:
        yield lent


async def why(here: House, batch_id: str = "nightly") -> str:
    """Return why a batch is paused."""
    [(reason,)] = await here.ask("SELECT reason FROM batches WHERE batch_id = %s", batch_id)
    return str(reason)


async def state(here: House, batch_id: str = "nightly") -> str:
    """Return the state of a batch."""
    found, _ = await here.batch(batch_id)
    return found


async def spent(here: House, batch_id: str = "nightly") -> tuple[Decimal, int]:
    """Return what counts against a batch's budget."""
    batch = await here.ledger.batch(batch_id)
    assert batch
    return batch.progress.cost_usd, batch.progress.tokens


# -- budgets. An answer costs a quarter, and 7 tokens.


async def test_a_batch_is_paused_once_its_budget_is_spent(here: House) -> None:
    """What was published ends, the rest is neither lost nor published, and executors see the pause."""
    await here.submit("nightly", 12, max_cost_usd=Decimal("1.00"))
    await here.run_cycle()
    assert len(await here.work("nightly")) == 4
    await here.run_cycle(3)
    assert await state(here) == "paused"
    assert await why(here) == "budget $1.00: $1.00 spent"
    assert await here.states("nightly") == ["1 completed"] * 4 + ["1 queued"] * 8
    assert await here.work("nightly") == []
    [entry] = await here.queues.batch_registry.list()
    assert entry.state is BatchState.PAUSED


async def test_a_resume_needs_a_larger_budget(here: House) -> None:
    """Without one, the error has the command to type; a new budget is stored with the batch and applies."""
    await here.submit("nightly", 12, max_cost_usd=Decimal("1.00"))
    await here.run_cycle()
    await here.work("nightly")
    await here.run_cycle()
    with pytest.raises(
        OperationRejected, match=r"budget \$1.00: \$1.00 spent. .* batch resume nightly --max-cost 2"
    ):
        await here.operator.resume("nightly")
    with pytest.raises(OperationRejected, match=r"budget \$0.50: \$1.00 spent"):
        await here.operator.resume("nightly", budget={"max_cost_usd": Decimal("0.50")})
    assert await state(here) == "paused"
    await here.operator.resume("nightly", budget={"max_cost_usd": Decimal(2)})
    for _ in range(3):
        await here.run_cycle()
        await here.work("nightly")
    await here.run_cycle()
    assert await why(here) == "budget $2.00: $2.00 spent"
    await here.operator.resume("nightly", budget={"max_cost_usd": None})
    await here.work_until_over("nightly")
    assert await state(here) == "completed"
    requests = await here.ask(
        "SELECT by_whom, reason FROM batch_events WHERE type = 'budget' ORDER BY number"
    )
    assert requests == [("ada", "at most $2.00, any tokens"), ("ada", "any cost, any tokens")]


async def test_tokens_have_a_budget_of_their_own(here: House) -> None:
    """A token budget pauses a batch like a cost budget."""
    await here.submit("nightly", 12, max_tokens=20)
    await here.run_cycle()
    await here.work("nightly")
    await here.run_cycle()
    assert await why(here) == "budget 20 tokens: 28 spent"
    await here.operator.resume("nightly", budget={"max_tokens": None})
    await here.work_until_over("nightly")


async def test_a_batch_that_has_ended_is_complete_whatever_it_cost(here: House) -> None:
    """No evaluation is left that a pause could hold back."""
    await here.submit("nightly", 3, max_cost_usd=Decimal("0.01"))
    await here.work_until_over("nightly")
    assert await here.batch("nightly") == ("completed", True)


async def test_a_paused_batch_whose_evaluations_have_ended_can_be_closed(here: House) -> None:
    """All evaluations were in flight: nothing is left to pay for, so no larger budget is needed."""
    await here.submit("nightly", 2, max_cost_usd=Decimal("0.25"))
    await here.run_cycle()
    assert await here.work("nightly", {2: "goes on"}) == [1, 2]
    await here.run_cycle()
    assert await state(here) == "paused"
    last = here.owned[evaluation_id("nightly", 2)]
    last.record(ANSWER)
    last.record(p.Completed(verdict="passed"))
    await last.acknowledged()
    await here.store("nightly")
    await here.operator.resume("nightly")
    await here.run_cycle()
    assert await here.batch("nightly") == ("completed", True)


async def test_an_answer_recorded_before_a_crash_is_paid_once(here: House) -> None:
    """The attempt that reuses the answer pays nothing, and neither does a repeated record of it."""
    await here.submit("nightly", 1, max_cost_usd=Decimal(5))
    await here.run_cycle()
    await here.work("nightly", {1: "answers and dies"})
    assert await spent(here) == (Decimal("0.25"), 7)
    await here.run_cycle()
    [delivery] = await here.takes("nightly")
    claimed = await here.claim("nightly", 1, attempt=2)
    claimed.attempt.record(p.Running(target="simulated"))
    claimed.attempt.record(replace(ANSWER, cached=True))
    judged = p.Scored(evaluator="judge", score=1.0, usage=p.TokenUsage(output_tokens=3), cost_usd=0.5)
    claimed.attempt.record(judged)
    claimed.attempt.record(
        p.Completed(verdict="passed", cost_usd=0.75, usage=p.TokenUsage(output_tokens=10))
    )
    await claimed.attempt.acknowledged()
    await here.queues.tasks.ack("executors", [delivery])
    await here.store("nightly")
    assert await spent(here) == (Decimal("0.75"), 10)
    await here.store("nightly")
    assert await spent(here) == (Decimal("0.75"), 10)


async def test_a_late_answer_counts_against_the_budget(here: House) -> None:
    """Its attempt had been replaced: the answer is charged, and pauses the batch."""
    await here.submit("nightly", 2, max_cost_usd=Decimal("0.25"))
    await here.run_cycle()
    await here.work("nightly", {1: "dies", 2: "goes on"})
    zombie = here.owned[evaluation_id("nightly", 1)]
    await here.run_cycle()
    zombie.record(ANSWER)
    with pytest.raises(AttemptLost):
        await zombie.acknowledged()

    async def is_stored() -> bool:
        await here.store("nightly")
        return await spent(here) == (Decimal("0.25"), 7)

    await until(is_stored)
    await here.run_cycle()
    assert await why(here) == "budget $0.25: $0.25 spent"


# -- failing fast


async def test_a_batch_in_which_everything_fails_is_paused(here: House) -> None:
    """The error is the reason; the remaining evaluations are not attempted."""
    await here.submit("nightly", 12, spec=IMPATIENT)
    await here.run_cycle()
    await here.work("nightly", ALL_FAIL)
    await here.run_cycle(2)
    assert await state(here) == "paused"
    assert await why(here) == "3 evaluations in a row failed: permanent: no such model"
    assert await here.states("nightly") == ["1 failed"] * 4 + ["1 queued"] * 8


async def test_a_resume_resets_the_failure_count(here: House) -> None:
    """Failures before the resume do not count; failures after it do."""
    await here.submit("nightly", 12, spec=replace(SPEC, fail_fast_after=4))
    await here.run_cycle()
    await here.work("nightly", ALL_FAIL)
    await here.run_cycle()
    assert await state(here) == "paused"
    await here.operator.resume("nightly")
    await here.run_cycle(2)
    assert await state(here) == "running"
    await here.work("nightly", ALL_FAIL)
    await here.run_cycle()
    assert await state(here) == "paused"


async def test_retried_dead_letters_that_fail_again_pause_the_batch_too(here: House) -> None:
    """An operator's retry counts as a first attempt: the key is still wrong."""
    await here.submit("nightly", 4, spec=IMPATIENT)
    await here.work_until_over("nightly", ALL_FAIL)
    assert await here.operator.retry("nightly") == 4
    await here.run_cycle()
    taken = await here.takes("nightly")
    for number in (1, 2, 3):
        claimed = await here.claim("nightly", number, attempt=2)
        claimed.attempt.record(p.Failed(error=p.ErrorDetail(kind="permanent", message="still none")))
        await claimed.attempt.acknowledged()
    await here.store("nightly")
    await here.run_cycle()
    assert await why(here) == "3 evaluations in a row failed: permanent: still none"
    await here.queues.tasks.ack("executors", taken)


@pytest.mark.parametrize(
    ("outcomes", "after"),
    [
        ({1: "failed", 2: "failed", 3: "completed", 4: "failed"}, 3),
        ({}, 1),
        (ALL_FAIL, 0),
        (ALL_FAIL, 13),
        (ALL_FAIL, 12),
    ],
    ids=["one goes well", "all go well", "never", "too small", "just as many"],
)
async def test_a_batch_with_some_successes_is_not_paused(
    here: House, outcomes: dict[int, str], after: int
) -> None:
    """Each failure is a dead letter, and the batch runs to its end."""
    await here.submit("nightly", 12, spec=replace(SPEC, fail_fast_after=after))
    await here.work_until_over("nightly", outcomes)
    assert await here.batch("nightly") == ("completed", True)


async def test_exhausted_retries_do_not_pause_a_batch(here: House) -> None:
    """Transient failures may pass, so an evaluation that used all its retries does not count."""
    await here.submit("nightly", 8, spec=replace(IMPATIENT, retries=1))
    await here.run_cycle()
    await here.work("nightly", dict.fromkeys(range(1, 9), "retrying"))
    await here.work_until_over("nightly", ALL_FAIL)
    assert "2 failed" in await here.states("nightly")


async def test_lost_executors_do_not_pause_a_batch(here: House) -> None:
    """Executors can crash; the batch continues on others."""
    await here.submit("nightly", 4, spec=replace(SPEC, fail_fast_after=3, retries=0))
    await here.run_cycle()
    await here.work("nightly", {1: "dies", 2: "dies", 3: "dies", 4: "goes on"})
    await here.run_cycle(3)
    assert await here.states("nightly") == ["2 failed"] * 3 + ["1 running"]
    assert await state(here) == "running"


async def test_a_failed_conversation_counts_as_one_failure(here: House) -> None:
    """The turns after the failed one fail without a call."""
    turns = [
        NewEvaluation(
            p.Case(id=f"turn-{n}", input=n), serial=SerialPlace(n - 1, (Recall(n - 1),)) if n > 1 else None
        )
        for n in range(1, 8)
    ]
    await here.submit_these("nightly", [*turns, NewEvaluation(p.Case(id="last", input=0))], spec=IMPATIENT)
    await here.run_cycle()
    await here.work("nightly", {1: "failed", 8: "goes on"})
    await here.run_cycle(12)
    assert (await here.states("nightly"))[:7] == ["1 failed"] * 7
    assert await state(here) == "running"


# -- output of commands


@pytest.fixture
async def shown(redis_url: str, postgres_url: str) -> AsyncIterator[Harness]:
    async with harness(postgres_url, redis_url) as lent:
        yield lent


async def test_status_reports_the_spend_and_the_command_to_resume(shown: Harness) -> None:
    """It prints the reason, the figures, and the one command that resumes the batch."""
    await shown.submit("nightly", ["passed", "failed", "queued"])
    paused = "budget $0.50: $0.50 spent"
    await shown.change(
        "nightly", f"state = 'paused', reason = '{paused}', max_cost_usd = 0.5, max_tokens = 1000"
    )
    ran = await shown.run("status", "nightly")
    assert ran.exit_code == 4
    assert "$0.50 of $0.50 spent · 0 of 1,000 tokens spent" in ran.output
    assert f"Paused: {paused}. To continue: scoreline batch resume nightly --max-cost 1\n" in ran.output
    [document] = await shown.documents("status", "nightly")
    assert {key: document[key] for key in ("max_cost_usd", "max_tokens", "spent_usd", "spent_tokens")} == {
        "max_cost_usd": 0.5,
        "max_tokens": 1_000,
        "spent_usd": 0.5,
        "spent_tokens": 0,
    }
    assert document["reason"] == paused


async def test_spend_of_unknown_cost_is_part_of_the_one_figure(shown: Harness) -> None:
    """Screen, JSON, list and error have the same spend; no line beside it has another cost."""
    await shown.submit("nightly", ["passed", "failed", "queued"])
    await shown.change("nightly", "state = 'paused', max_cost_usd = 0.6, unrecorded_usd = 0.1")
    unknown = "of it $0.10 for calls whose cost is unknown"
    ran = await shown.run("status", "nightly")
    assert f"$0.60 of $0.60 spent, {unknown}" in " ".join(ran.output.split())
    assert "cost $" not in ran.output
    [document] = await shown.documents("status", "nightly")
    assert (document["spent_usd"], document["unrecorded_usd"], document["cost_usd"]) == (0.6, 0.1, 0.5)
    [listed] = await shown.documents("list")
    assert listed["spent_usd"] == 0.6
    refused = await shown.run("resume", "nightly", "--detach", "--distributed")
    assert f"budget $0.60: $0.60 spent, {unknown}" in str(refused.exception)


async def test_a_resume_without_a_larger_budget_is_refused(shown: Harness) -> None:
    """The error is one sentence; a mistyped budget is refused, too."""
    await shown.submit("nightly", ["passed", "queued"])
    await shown.change("nightly", "state = 'paused', max_cost_usd = 0.25")
    ran = await shown.run("resume", "nightly", "--detach", "--distributed")
    assert "nightly can't continue: budget $0.25: $0.25 spent." in str(ran.exception)
    ran = await shown.run("resume", "nightly", "--max-cost", "a lot")
    assert "--max-cost must be an amount in dollars" in str(ran.exception)
    ran = await shown.run("resume", "nightly", "--max-tokens", "-1")
    assert "--max-tokens must be a whole number" in str(ran.exception)
    ran = await shown.run("resume", "nightly", "--max-cost", "none", "--detach", "--distributed")
    assert ran.exit_code == 0, ran.exception
    [document] = await shown.documents("status", "nightly")
    assert (document["status"], document["max_cost_usd"]) == ("running", None)
