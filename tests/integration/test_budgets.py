"""Batches that pause by themselves: the budget is spent, or nothing of them can go well."""

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
from tests.integration.coordinating import ANSWER, SPEC, House, house
from tests.integration.scoreline.batch_stage import Stage, stage
from tests.waiting import until

IMPATIENT = replace(SPEC, fail_fast_after=3)
ALL_FAIL = dict.fromkeys(range(1, 100), "failed")


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url, window=4, page_size=4) as lent:
        yield lent


async def why(here: House, batch_id: str = "nightly") -> str:
    """Say why a batch is paused."""
    [(reason,)] = await here.ask("SELECT reason FROM batches WHERE batch_id = %s", batch_id)
    return str(reason)


async def state(here: House, batch_id: str = "nightly") -> str:
    """Say in which state a batch is."""
    found, _ = await here.batch(batch_id)
    return found


async def spent(here: House, batch_id: str = "nightly") -> tuple[Decimal, int]:
    """Say what counts against a batch's budget."""
    batch = await here.ledger.batch(batch_id)
    assert batch
    return batch.spent_usd, batch.spent_tokens


# -- budgets. An answer costs a quarter, and 7 tokens.


async def test_a_batch_is_paused_once_its_budget_is_spent(here: House) -> None:
    """What was published has ended, the rest is neither lost nor published, and executors are told."""
    await here.submit("nightly", 12, max_cost_usd=Decimal("1.00"))
    await here.run_cycle()
    assert len(await here.work("nightly")) == 4
    await here.run_cycle(3)
    assert await state(here) == "paused"
    assert await why(here) == "budget $1.00: $1.00 spent"
    assert await here.standing("nightly") == ["1 completed"] * 4 + ["1 queued"] * 8
    assert await here.work("nightly") == []
    [entry] = await here.queues.batch_registry.list()
    assert entry.state is BatchState.PAUSED


async def test_it_goes_on_with_a_larger_budget_and_not_without(here: House) -> None:
    """Who asks without one is told what to type; the new budget is kept with the batch, and spent."""
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
    asked = await here.ask("SELECT by_whom, reason FROM batch_events WHERE type = 'budget' ORDER BY number")
    assert asked == [("ada", "at most $2.00, any tokens"), ("ada", "any cost, any tokens")]


async def test_tokens_have_a_budget_of_their_own(here: House) -> None:
    """As money has."""
    await here.submit("nightly", 12, max_tokens=20)
    await here.run_cycle()
    await here.work("nightly")
    await here.run_cycle()
    assert await why(here) == "budget 20 tokens: 28 spent"
    await here.operator.resume("nightly", budget={"max_tokens": None})
    await here.work_until_over("nightly")


async def test_a_batch_that_has_ended_is_complete_whatever_it_cost(here: House) -> None:
    """Nothing is left that a pause could hold back."""
    await here.submit("nightly", 3, max_cost_usd=Decimal("0.01"))
    await here.work_until_over("nightly")
    assert await here.batch("nightly") == ("completed", True)


async def test_what_ended_after_the_pause_may_be_closed(here: House) -> None:
    """All of it was in hand: there is nothing to pay for, so nobody asks for a larger budget."""
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


async def test_what_died_with_its_answer_on_record_was_paid_once(here: House) -> None:
    """The attempt that takes the answer over pays nothing, and neither does one that gives it again."""
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


async def test_an_answer_that_comes_too_late_was_paid(here: House) -> None:
    """Its attempt was given up for dead: the answer counts against the budget, and pauses the batch."""
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


async def test_a_batch_of_which_everything_fails_is_paused(here: House) -> None:
    """The error is the reason; what is left has not been tried."""
    await here.submit("nightly", 12, spec=IMPATIENT)
    await here.run_cycle()
    await here.work("nightly", ALL_FAIL)
    await here.run_cycle(2)
    assert await state(here) == "paused"
    assert await why(here) == "3 evaluations in a row failed: permanent: no such model"
    assert await here.standing("nightly") == ["1 failed"] * 4 + ["1 queued"] * 8


async def test_after_a_resume_the_count_begins_anew(here: House) -> None:
    """What failed before it does not count; what fails after it does."""
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


async def test_dead_letters_that_fail_again_at_once_are_hopeless_too(here: House) -> None:
    """An operator's retry is a first try: the key is still wrong."""
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
async def test_a_batch_with_hope_goes_on(here: House, outcomes: dict[int, str], after: int) -> None:
    """Whatever failed is a dead letter, and the batch comes to its end."""
    await here.submit("nightly", 12, spec=replace(SPEC, fail_fast_after=after))
    await here.work_until_over("nightly", outcomes)
    assert await here.batch("nightly") == ("completed", True)


async def test_spent_retries_are_no_reason(here: House) -> None:
    """What failed after it was tried again may go well tomorrow: each runs out of its own luck."""
    await here.submit("nightly", 8, spec=replace(IMPATIENT, retries=1))
    await here.run_cycle()
    await here.work("nightly", dict.fromkeys(range(1, 9), "retrying"))
    await here.work_until_over("nightly", ALL_FAIL)
    assert "2 failed" in await here.standing("nightly")


async def test_lost_executors_are_no_reason(here: House) -> None:
    """Machines die; the batch goes on with others."""
    await here.submit("nightly", 4, spec=replace(SPEC, fail_fast_after=3, retries=0))
    await here.run_cycle()
    await here.work("nightly", {1: "dies", 2: "dies", 3: "dies", 4: "goes on"})
    await here.run_cycle(3)
    assert await here.standing("nightly") == ["2 failed"] * 3 + ["1 running"]
    assert await state(here) == "running"


async def test_a_conversation_that_can_not_go_on_is_one_failure(here: House) -> None:
    """The turns after the one that failed are given up without being asked."""
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
    assert (await here.standing("nightly"))[:7] == ["1 failed"] * 7
    assert await state(here) == "running"


# -- what people see


@pytest.fixture
async def shown(redis_url: str, postgres_url: str) -> AsyncIterator[Stage]:
    async with stage(postgres_url, redis_url) as lent:
        yield lent


async def test_status_says_what_is_spent_and_how_to_go_on(shown: Stage) -> None:
    """The reason, the figures, and the one command that helps."""
    await shown.submit("nightly", ["passed", "failed", "queued"])
    paused = "budget $0.50: $0.50 spent"
    await shown.change(
        "nightly", f"state = 'paused', reason = '{paused}', max_cost_usd = 0.5, max_tokens = 1000"
    )
    ran = await shown.run("status", "nightly")
    assert ran.exit_code == 4
    assert "$0.50 of $0.50 spent · 0 of 1,000 tokens spent" in ran.output
    assert f"Paused: {paused}. To go on: scoreline batch resume nightly --max-cost 1\n" in ran.output
    [told] = await shown.documents("status", "nightly")
    assert {key: told[key] for key in ("max_cost_usd", "max_tokens", "spent_usd", "spent_tokens")} == {
        "max_cost_usd": 0.5,
        "max_tokens": 1_000,
        "spent_usd": 0.5,
        "spent_tokens": 0,
    }
    assert told["reason"] == paused


async def test_spend_of_unknown_cost_is_part_of_the_one_figure(shown: Stage) -> None:
    """Screen, JSON, list and refusal have the same spend; no line beside it has another cost."""
    await shown.submit("nightly", ["passed", "failed", "queued"])
    await shown.change("nightly", "state = 'paused', max_cost_usd = 0.6, unrecorded_usd = 0.1")
    unknown = "of it $0.10 for calls whose cost is unknown"
    ran = await shown.run("status", "nightly")
    assert f"$0.60 of $0.60 spent, {unknown}" in " ".join(ran.output.split())
    assert "cost $" not in ran.output
    [told] = await shown.documents("status", "nightly")
    assert (told["spent_usd"], told["unrecorded_usd"], told["cost_usd"]) == (0.6, 0.1, 0.5)
    [listed] = await shown.documents("list")
    assert listed["spent_usd"] == 0.6
    refused = await shown.run("resume", "nightly", "--detach", "--distributed")
    assert f"budget $0.60: $0.60 spent, {unknown}" in str(refused.exception)


async def test_who_resumes_without_a_larger_budget_is_told_so(shown: Stage) -> None:
    """In a sentence; and so is who mistypes one."""
    await shown.submit("nightly", ["passed", "queued"])
    await shown.change("nightly", "state = 'paused', max_cost_usd = 0.25")
    ran = await shown.run("resume", "nightly", "--detach", "--distributed")
    assert "nightly can't go on: budget $0.25: $0.25 spent." in str(ran.exception)
    ran = await shown.run("resume", "nightly", "--max-cost", "a lot")
    assert "--max-cost must be an amount in dollars" in str(ran.exception)
    ran = await shown.run("resume", "nightly", "--max-tokens", "-1")
    assert "--max-tokens must be a whole number" in str(ran.exception)
    ran = await shown.run("resume", "nightly", "--max-cost", "none", "--detach", "--distributed")
    assert ran.exit_code == 0, ran.exception
    [told] = await shown.documents("status", "nightly")
    assert (told["status"], told["max_cost_usd"]) == ("running", None)
