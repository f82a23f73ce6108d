"""The coordinator on real servers: whatever is lost, half done or dead, every evaluation ends."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.clock import utc_now
from taskqueue.batch_registry import BatchState
from tests.integration.coordinator.coordinating import AN_HOUR, NO_TIME, SPEC, House, house

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
    """Queued, claimed, answered, retrying or ended: every evaluation still ends."""
    await here.submit("nightly", 6)
    await here.submit("second", 4)
    await here.run_cycle()
    await here.work("nightly", {1: "dies", 2: "answers and dies", 3: "retrying", 4: "failed"})
    await here.lose_redis()
    await here.work_until_over("nightly")
    await here.work_until_over("second")
    assert await here.states("nightly") == [
        "2 completed", "2 completed", "2 completed", "1 failed", "1 completed", "1 completed",
    ]  # fmt: skip
    assert await here.states("second") == ["2 completed"] * 4
    assert (await here.opening("nightly", 2, 2)).answer == p.Answer("4", p.TokenUsage(7), 0.25)


async def test_no_attempt_is_opened_before_the_grace_is_over(redis_url: str, postgres_url: str) -> None:
    """After a loss of Redis, owners have time to re-append their attempts, and the live one does."""
    async with house(redis_url, postgres_url, grace=AN_HOUR) as here:
        await here.submit("nightly", 2)
        await here.run_cycle()
        await here.takes("nightly")
        claimed = await here.claim("nightly", 1)
        await here.store("nightly")
        await here.lose_redis()
        await here.run_cycle(3)
        assert await here.states("nightly") == ["1 provisioning", "1 queued"]
        claimed.attempt.record(p.Running(target="simulated"))
        claimed.attempt.record(p.Completed(verdict="passed", output="4"))
        await claimed.attempt.acknowledged()
        await here.store("nightly")
        assert await here.states("nightly") == ["1 completed", "1 queued"]
        later = here.another()
        await later.run_cycle()
        assert await here.states("nightly") == ["1 completed", "2 queued"]


async def test_a_live_owner_that_re_appended_its_attempt_keeps_it(here: House) -> None:
    """Its claim is in the new stream, although the opening is not."""
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
    assert await here.states("nightly") == ["1 provisioning"]


# -- executors


async def test_a_dead_executor_is_replaced_and_charged(here: House) -> None:
    """The next attempt is opened, with one retry less."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "dies"})
    await here.run_cycle()
    assert await here.states("nightly") == ["2 queued"]
    opening = await here.opening("nightly", 1, 2)
    assert (opening.reason, opening.retries) == (p.OpeningReason.LOST, SPEC.retries - 1)
    await here.work_until_over("nightly")


async def test_a_live_executor_within_its_time_keeps_its_attempt(here: House) -> None:
    """This holds however long no event has arrived."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "goes on"})
    await here.alter("UPDATE evaluations SET updated_at = now() - interval '5 minutes'")
    await here.run_cycle(3)
    assert await here.states("nightly") == ["1 running"]


async def test_a_hung_executor_is_replaced(redis_url: str, postgres_url: str) -> None:
    """It sends heartbeats, but has exceeded the sum of all time-outs."""
    async with house(redis_url, postgres_url, hung_grace=NO_TIME) as here:
        await here.submit("nightly", 1, spec=IMPATIENT)
        await here.run_cycle()
        await here.work("nightly", {1: "goes on"})
        await here.run_cycle()
        assert await here.states("nightly") == ["2 queued"]


async def test_a_case_that_kills_its_executors_fails(here: House) -> None:
    """After three lost executors the evaluation fails, with the reason."""
    await here.submit("nightly", 2, spec=BatchSpec("a batch", SPEC.targets, retries=50))
    await here.work_until_over("nightly", {1: "dies"})
    assert await here.states("nightly") == ["4 failed", "1 completed"]
    error = await here.error("nightly", 1)
    assert error["kind"] == "lost"
    assert "3 times" in error["message"]
    assert here.owners[evaluation_id("nightly", 1)] in error["message"]


async def test_a_recorded_answer_is_reused_by_the_next_attempt(here: House) -> None:
    """An answer recorded before a crash is not paid for again."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "answers and dies"})
    await here.run_cycle()
    assert (await here.opening("nightly", 1, 2)).answer == p.Answer("4", p.TokenUsage(7), 0.25)
    await here.work_until_over("nightly")


async def test_a_retry_is_opened_when_it_is_due(here: House) -> None:
    """It is opened not before its time, and then at once."""
    await here.submit("nightly", 2)
    await here.run_cycle()
    await here.work("nightly", {1: "retrying", 2: "retrying later"})
    await here.run_cycle(2)
    assert await here.states("nightly") == ["2 queued", "1 retrying"]
    opening = await here.opening("nightly", 1, 2)
    assert (opening.reason, opening.retries) == (p.OpeningReason.RETRY, SPEC.retries - 1)


async def test_an_attempt_closed_in_the_stream_is_left_to_the_storage_worker(here: House) -> None:
    """The executor is dead and the terminal event is in the log: another attempt would be paid in vain."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.takes("nightly")
    claimed = await here.claim("nightly", 1)
    await here.store("nightly")
    claimed.attempt.record(p.Failed(error=p.ErrorDetail(kind="permanent")))
    await claimed.attempt.acknowledged()
    await here.die(evaluation_id("nightly", 1))
    await here.run_cycle(3)
    assert await here.states("nightly") == ["1 provisioning"]
    await here.store("nightly")
    assert await here.states("nightly") == ["1 failed"]


# -- several coordinators


async def test_overlapping_coordinators_open_each_attempt_once(here: House) -> None:
    """Three run cycles at once, through crashes and retries: every attempt is opened once."""
    others = [here.coordinator, here.another(), here.another()]
    await here.submit("nightly", 20)
    outcomes = {1: "dies", 2: "retrying", 3: "failed", 4: "answers and dies"}
    for _ in range(4):
        await asyncio.gather(*(each.run_cycle() for each in others))
        await here.work("nightly", outcomes)
        outcomes = {}
    await asyncio.gather(*(each.run_cycle() for each in others))
    assert await here.states("nightly") == [
        "2 completed", "2 completed", "1 failed", "2 completed", *["1 completed"] * 16,
    ]  # fmt: skip
    assert await here.batch("nightly") == ("completed", True)
    events = await here.ask("SELECT type FROM batch_events WHERE batch_id = 'nightly' ORDER BY number")
    assert events == [("accepted",), ("finished",)]
    await here.run_cycle()
    assert await here.queues.batch_registry.list() == []


async def test_one_bad_batch_stops_only_itself(here: House) -> None:
    """A spec that can't be parsed delays its own batch, and no other."""
    await here.submit("bad", 1)
    await here.submit("good", 1)
    await here.run_cycle()
    await here.alter("UPDATE batches SET spec = '{}' WHERE batch_id = 'bad'")
    await here.work("bad", {1: "retrying"})
    await here.work_until_over("good")
    assert await here.states("bad") == ["1 retrying"]


# -- the time limit of a batch


async def test_a_batch_beyond_its_time_limit_is_ended(here: House) -> None:
    """Published or not, each open evaluation times out; executors see that the batch has stopped."""
    await here.submit("nightly", 3)
    await here.run_cycle()
    await here.work("nightly", {2: "goes on", 3: "retrying later"})
    await here.alter("UPDATE batches SET deadline = now() WHERE batch_id = 'nightly'")
    await here.run_cycle()
    assert (await here.batch("nightly")) == ("expired", False)
    await here.run_cycle(2)
    assert (await here.batch("nightly")) == ("expired", True)
    assert await here.states("nightly") == ["1 completed", "2 timed_out", "2 timed_out"]


async def test_executors_see_the_requests_of_operators(here: House) -> None:
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


async def test_an_error_with_odd_characters_is_retried_like_any_other(here: House) -> None:
    """The time of a retry is read from JSON, whatever else an executor has written to it."""
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
    assert await here.states("nightly") == ["2 queued", "2 queued"]


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
