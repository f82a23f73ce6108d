"""The coordinator on real servers: whatever is lost, half done or dead, every evaluation ends."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.clock import utc_now
from taskqueue.batch_registry import BatchState
from tests.integration.coordinating import AN_HOUR, NO_TIME, SPEC, House, house

IMPATIENT = BatchSpec(
    "impatient",
    SPEC.targets,
    evaluators=(EvaluatorSpec("exact", "exact", timeout=0.0001),),
    timeout=0.0001,
)


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url) as made:
        yield made


# -- Redis lost


async def test_redis_may_be_lost_in_the_middle_of_a_batch(here: House) -> None:
    """Queued, claimed, answered, retrying or ended: every evaluation still comes to its end."""
    await here.submit("nightly", 6)
    await here.submit("second", 4)
    await here.run_cycle()
    await here.work("nightly", {1: "dies", 2: "answers and dies", 3: "retrying", 4: "failed"})
    await here.lose_redis()
    await here.work_until_over("nightly")
    await here.work_until_over("second")
    assert await here.standing("nightly") == [
        "2 completed", "2 completed", "2 completed", "1 failed", "1 completed", "1 completed",
    ]  # fmt: skip
    assert await here.standing("second") == ["2 completed"] * 4
    assert (await here.opening("nightly", 2, 2)).answer == p.Answer("4", p.TokenUsage(7), 0.25)


async def test_nothing_is_opened_before_the_grace_is_over(redis_url: str, postgres_url: str) -> None:
    """After a loss owners have time to put their attempts back, and the living one does."""
    async with house(redis_url, postgres_url, grace=AN_HOUR) as here:
        await here.submit("nightly", 2)
        await here.run_cycle()
        await here.takes("nightly")
        claimed = await here.claim("nightly", 1)
        await here.store("nightly")
        await here.lose_redis()
        await here.run_cycle(3)
        assert await here.standing("nightly") == ["1 provisioning", "1 queued"]
        claimed.attempt.record(p.Running(target="simulated"))
        claimed.attempt.record(p.Completed(verdict="passed", output="4"))
        await claimed.attempt.acknowledged()
        await here.store("nightly")
        assert await here.standing("nightly") == ["1 completed", "1 queued"]
        later = here.another()
        await later.run_cycle()
        assert await here.standing("nightly") == ["1 completed", "2 queued"]


async def test_a_live_owner_that_put_its_attempt_back_is_left_in_peace(here: House) -> None:
    """Its claim is in the new stream, though the opening is not."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.takes("nightly")
    claimed = await here.claim("nightly", 1)
    await here.store("nightly")
    await here.lose_redis()
    claimed.attempt.record(p.Running(target="simulated"))
    await claimed.attempt.acknowledged()
    await here.beat(evaluation_id("nightly", 1))
    await here.run_cycle(3)
    assert await here.standing("nightly") == ["1 provisioning"]


# -- executors


async def test_a_dead_executor_is_replaced_and_charged(here: House) -> None:
    """Its attempt is followed by the next, with one retry less."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "dies"})
    await here.run_cycle()
    assert await here.standing("nightly") == ["2 queued"]
    opening = await here.opening("nightly", 1, 2)
    assert (opening.reason, opening.retries) == (p.OpeningReason.LOST, SPEC.retries - 1)
    await here.work_until_over("nightly")


async def test_a_living_executor_within_its_time_is_left_alone(here: House) -> None:
    """However long nothing has moved."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "goes on"})
    await here.alter("UPDATE evaluations SET updated_at = now() - interval '5 minutes'")
    await here.run_cycle(3)
    assert await here.standing("nightly") == ["1 running"]


async def test_a_hung_executor_is_replaced(redis_url: str, postgres_url: str) -> None:
    """It beats, and has taken longer than all time-outs together allow."""
    async with house(redis_url, postgres_url, hung_grace=NO_TIME) as here:
        await here.submit("nightly", 1, spec=IMPATIENT)
        await here.run_cycle()
        await here.work("nightly", {1: "goes on"})
        await here.run_cycle()
        assert await here.standing("nightly") == ["2 queued"]


async def test_a_case_that_kills_its_executors_is_settled(here: House) -> None:
    """Three executors are enough: it is failed, and says why."""
    await here.submit("nightly", 2, spec=BatchSpec("a batch", SPEC.targets, retries=50))
    await here.work_until_over("nightly", {1: "dies"})
    assert await here.standing("nightly") == ["4 failed", "1 completed"]
    error = await here.error("nightly", 1)
    assert error["kind"] == "lost"
    assert "3 times" in error["message"]
    assert here.owners[evaluation_id("nightly", 1)] in error["message"]


async def test_an_answer_on_record_goes_along(here: House) -> None:
    """Who answered and died is not paid again."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "answers and dies"})
    await here.run_cycle()
    assert (await here.opening("nightly", 1, 2)).answer == p.Answer("4", p.TokenUsage(7), 0.25)
    await here.work_until_over("nightly")


async def test_a_retry_is_opened_when_it_is_due(here: House) -> None:
    """Not before its time, and then at once."""
    await here.submit("nightly", 2)
    await here.run_cycle()
    await here.work("nightly", {1: "retrying", 2: "retrying later"})
    await here.run_cycle(2)
    assert await here.standing("nightly") == ["2 queued", "1 retrying"]
    opening = await here.opening("nightly", 1, 2)
    assert (opening.reason, opening.retries) == (p.OpeningReason.RETRY, SPEC.retries - 1)


async def test_what_is_closed_in_the_stream_is_left_to_the_storage_worker(here: House) -> None:
    """The executor is dead and the end is on record: another attempt would be paid for in vain."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.takes("nightly")
    claimed = await here.claim("nightly", 1)
    await here.store("nightly")
    claimed.attempt.record(p.Failed(error=p.ErrorDetail(kind="permanent")))
    await claimed.attempt.acknowledged()
    await here.die(evaluation_id("nightly", 1))
    await here.run_cycle(3)
    assert await here.standing("nightly") == ["1 provisioning"]
    await here.store("nightly")
    assert await here.standing("nightly") == ["1 failed"]


# -- several coordinators


async def test_coordinators_that_overlap_do_nothing_twice(here: House) -> None:
    """Three go round at once, through death and retries: every attempt is opened once."""
    others = [here.coordinator, here.another(), here.another()]
    await here.submit("nightly", 20)
    outcomes = {1: "dies", 2: "retrying", 3: "failed", 4: "answers and dies"}
    for _ in range(4):
        await asyncio.gather(*(each.run_cycle() for each in others))
        await here.work("nightly", outcomes)
        outcomes = {}
    await asyncio.gather(*(each.run_cycle() for each in others))
    assert await here.standing("nightly") == [
        "2 completed", "2 completed", "1 failed", "2 completed", *["1 completed"] * 16,
    ]  # fmt: skip
    assert await here.batch("nightly") == ("completed", True)
    told = await here.ask("SELECT type FROM batch_events WHERE batch_id = 'nightly' ORDER BY number")
    assert told == [("accepted",), ("finished",)]
    await here.run_cycle()
    assert await here.queues.batch_registry.list() == []


async def test_one_bad_batch_stops_only_itself(here: House) -> None:
    """A spec that can't be read keeps its own batch waiting, and no other."""
    await here.submit("bad", 1)
    await here.submit("good", 1)
    await here.run_cycle()
    await here.alter("UPDATE batches SET spec = '{}' WHERE batch_id = 'bad'")
    await here.work("bad", {1: "retrying"})
    await here.work_until_over("good")
    assert await here.standing("bad") == ["1 retrying"]


# -- the batch's own time


async def test_a_batch_out_of_time_is_ended(here: House) -> None:
    """Published or not, what has not ended has timed out; executors are told to stop."""
    await here.submit("nightly", 3)
    await here.run_cycle()
    await here.work("nightly", {2: "goes on", 3: "retrying later"})
    await here.alter("UPDATE batches SET deadline = now() WHERE batch_id = 'nightly'")
    await here.run_cycle()
    assert (await here.batch("nightly")) == ("expired", False)
    await here.run_cycle(2)
    assert (await here.batch("nightly")) == ("expired", True)
    assert await here.standing("nightly") == ["1 completed", "2 timed_out", "2 timed_out"]


async def test_executors_see_what_was_asked(here: House) -> None:
    """The batch registry follows the ledger."""
    await here.submit("nightly", 1, priority=7, project="ours")
    await here.run_cycle()
    [entry] = await here.queues.batch_registry.list()
    assert (entry.state, entry.priority, entry.project) == (BatchState.RUNNING, 7, "ours")
    await here.lose_redis()
    await here.run_cycle()
    assert [each.batch_id for each in await here.queues.batch_registry.list()] == ["nightly"]
    assert TargetSpec("simulated", "simulated").type in str(
        await here.queues.batch_registry.spec("nightly")
    )


async def test_a_fault_with_odd_characters_is_tried_again_like_any_other(here: House) -> None:
    """The time of a retry is read out of JSON, whatever else an executor has put into it."""
    await here.submit("nightly", 2)
    await here.run_cycle()
    await here.takes("nightly")
    for number, message in ((1, 'a \0 NUL, a \\u0000, a "quote"'), (2, "plain")):
        claimed = await here.claim("nightly", number)
        fault = p.ErrorDetail(kind="transient", message=message)
        claimed.attempt.record(p.Retrying(error=fault, retry_at=utc_now()))
        await claimed.attempt.acknowledged()
    await here.store("nightly")
    await here.run_cycle()
    assert await here.standing("nightly") == ["2 queued", "2 queued"]


async def test_a_coordinator_leads_only_the_batches_of_its_run(redis_url, postgres_url):
    """The fleet's leaves a local run's batch alone, and the run's leaves the fleet's batch alone."""
    async with house(redis_url, postgres_url) as here:
        await here.submit("local", 1)
        await here.submit("shared", 1)
        await here.ledger.assign_run("local", "run-1", by="ada")
        await here.run_cycle()
        assert [one.batch_id for one in await here.queues.batch_registry.list()] == ["shared"]
        await here.another(run_id="run-1").run_cycle()
        up = {one.batch_id: one.run_id for one in await here.queues.batch_registry.list()}
        assert up == {"local": "run-1", "shared": ""}
