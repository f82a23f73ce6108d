"""The coordinator on real servers: whatever is lost, half done or dead, every evaluation ends."""

from collections.abc import AsyncIterator

import pytest

from domain.batch_spec import TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.clock import utc_now
from taskqueue.batch_registry import BatchState
from tests.integration.coordinator.coordinating import AN_HOUR, House, house


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


# -- batches


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
