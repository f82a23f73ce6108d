"""Evaluations without progress on real servers: dead and hung executors, retries, and closed attempts."""

from collections.abc import AsyncIterator

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from tests.integration.coordinator.coordinating import NO_TIME, SPEC, House, house

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
