"""Operators' requests to batches, on real servers: each is idempotent, and any process may make it."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest

from coordinator.operations import BatchNotFound, OperationRejected
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.event_queue import AttemptLost
from eventlog.keys import DEFAULT_SHARDS, wake_key
from taskqueue.batch_registry import BatchState
from tests.integration.coordinator.coordinating import ANSWER, SPEC, House, house
from tests.waiting import until


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url, window=4, page_size=2) as made:
        yield made


async def requests(here: House, batch_id: str) -> list[tuple[str, str, str]]:
    """List the requests made to a batch."""
    sought = "SELECT type, by_whom, reason FROM batch_events WHERE batch_id = %s ORDER BY number"
    return [(row[0], row[1], row[2]) for row in await here.ask(sought, batch_id)]


# -- cancel


async def test_cancelling_ends_everything_at_once(here: House) -> None:
    """Published or not, claimed or not: every evaluation ends, and the batch is over."""
    await here.submit("nightly", 9)
    await here.run_cycle()
    await here.work("nightly", {2: "goes on", 3: "retrying later", 4: "failed"})
    await here.operator.cancel("nightly", reason="too dear")
    assert await here.states("nightly") == [
        "1 completed", "2 cancelled", "2 cancelled", "1 failed", *["2 cancelled"] * 5,
    ]  # fmt: skip
    assert await here.batch("nightly") == ("cancelled", True)
    assert await requests(here, "nightly") == [
        ("accepted", "user", ""), ("cancelled", "ada", "too dear"), ("finished", "coordinator", ""),
    ]  # fmt: skip
    assert await here.keys("eval:tasks:*") == []


async def test_a_cancelled_batch_stays_in_the_registry_until_executors_have_seen_it(
    here: House,
) -> None:
    """Executors poll the registry: if the entry vanished at once, their active tasks would run on."""
    await here.submit("nightly", 3)
    await here.run_cycle()
    await here.operator.cancel("nightly")
    patient = here.another()
    await patient.run_cycle()
    [entry] = await here.queues.batch_registry.list()
    assert (entry.batch_id, entry.state) == ("nightly", BatchState.STOPPED)
    hasty = here.another(unregister_delay=timedelta(0))
    await hasty.run_cycle()
    assert await here.queues.batch_registry.list() == []
    assert await here.keys("eval:*{nightly}*") == []


async def test_the_streams_of_what_was_cancelled_expire(here: House) -> None:
    """The writer of a terminal event sends a wake-up, so a storage worker expires the stream."""
    await here.submit("nightly", 3)
    await here.run_cycle()
    assert await woken(here) == set()
    await here.operator.cancel("nightly")
    assert await woken(here) == {evaluation_id("nightly", number) for number in (1, 2, 3)}
    await here.storage.store(sorted(await woken(here)))
    streams = await here.keys("eval:*nightly.*")
    assert len(streams) == 6
    assert all([await here.log.redis.ttl(key) > 0 for key in streams])


async def woken(here: House) -> set[str]:
    """Return the evaluations that have a wake-up."""
    entries: list[Any] = []
    for shard in range(DEFAULT_SHARDS):
        entries += await here.log.redis.xrange(wake_key(shard)) or []
    return {fields[b"id"].decode() for _, fields in entries}


async def test_an_owner_in_flight_is_fenced_and_its_answer_kept(here: House) -> None:
    """Its later events are fenced, but the paid answer is recorded, and counted."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "goes on"})
    await here.operator.cancel("nightly")
    owned = here.owned[evaluation_id("nightly", 1)]
    owned.record(ANSWER)
    with pytest.raises(AttemptLost):
        await owned.acknowledged()
    await until(lambda: spent(here, "nightly"))
    assert await spent(here, "nightly") == 0.25
    assert await here.ask("SELECT type, verdict FROM events WHERE attempt = 1 AND sequence = 3") == [
        ("responded", "late")
    ]
    assert await here.states("nightly") == ["2 cancelled"]


async def spent(here: House, batch_id: str) -> float:
    """Return the cost of a batch so far."""
    await here.store(batch_id)
    [(cost,)] = await here.ask("SELECT sum(cost_usd) FROM batch_progress WHERE batch_id = %s", batch_id)
    return float(cost)


async def test_cancelling_twice_changes_nothing(here: House) -> None:
    """Two requests at once, and one more when the batch is over."""
    await here.submit("nightly", 5)
    await here.run_cycle()
    await asyncio.gather(here.operator.cancel("nightly"), here.operator.cancel("nightly"))
    assert await here.states("nightly") == ["2 cancelled"] * 5
    with pytest.raises(OperationRejected, match="nothing to cancel"):
        await here.operator.cancel("nightly")
    assert [type_ for type_, _, _ in await requests(here, "nightly")] == [
        "accepted",
        "cancelled",
        "finished",
    ]


async def test_an_interrupted_cancel_is_completed_by_the_next_cycle(here: House) -> None:
    """The request is in Postgres; the rest follows from it."""
    await here.submit("nightly", 5)
    await here.run_cycle()
    await here.ledger.request_state("nightly", "cancelled", by="ada")
    await here.run_cycle()
    [entry] = await here.queues.batch_registry.list()
    assert entry.state is BatchState.STOPPED
    await here.run_cycle()
    assert await here.states("nightly") == ["2 cancelled"] * 5
    assert await here.batch("nightly") == ("cancelled", True)


async def test_a_cancelled_batch_stays_cancelled(here: House) -> None:
    """It can be neither resumed nor retried."""
    await here.submit("nightly", 1)
    await here.operator.cancel("nightly")
    for refused in (here.operator.resume("nightly"), here.operator.retry("nightly")):
        with pytest.raises(OperationRejected, match="cancelled"):
            await refused


# -- pause and resume


async def test_pausing_starts_no_new_attempt(here: House) -> None:
    """No window, no retry, no attempt after a loss; executors see the pause, and finish active tasks."""
    await here.submit("nightly", 9)
    await here.run_cycle()
    await here.operator.pause("nightly", reason="lunch")
    [entry] = await here.queues.batch_registry.list()
    assert entry.state is BatchState.PAUSED
    await here.work("nightly", {1: "dies", 2: "retrying", 3: "failed"})
    await here.run_cycle(3)
    assert await here.states("nightly") == [
        "1 running", "1 retrying", "1 failed", "1 completed", *["1 queued"] * 5,
    ]  # fmt: skip
    assert len(await here.keys("eval:*events:nightly*")) == 4
    with pytest.raises(OperationRejected, match="paused already"):
        await here.operator.pause("nightly")


async def test_resuming_continues_the_batch(here: House) -> None:
    """All waiting evaluations are processed."""
    await here.submit("nightly", 9)
    await here.run_cycle()
    await here.operator.pause("nightly")
    await here.work("nightly", {1: "dies", 2: "retrying"})
    await here.operator.resume("nightly")
    [entry] = await here.queues.batch_registry.list()
    assert entry.state is BatchState.RUNNING
    await here.work_until_over("nightly")
    assert await here.states("nightly") == ["2 completed"] * 2 + ["1 completed"] * 7
    with pytest.raises(OperationRejected, match="nothing to resume"):
        await here.operator.resume("nightly")
    with pytest.raises(OperationRejected, match="nothing to pause"):
        await here.operator.pause("nightly")


async def test_a_paused_batch_that_has_ended_is_over(here: House) -> None:
    """All its evaluations were in flight when it was paused."""
    await here.submit("nightly", 2)
    await here.run_cycle()
    await here.operator.pause("nightly")
    await here.work("nightly")
    await here.run_cycle()
    assert await here.batch("nightly") == ("completed", True)


async def test_a_request_to_an_unknown_batch_is_an_error(here: House) -> None:
    """Every request raises it."""
    asking = here.operator
    for refused in (asking.pause("no"), asking.resume("no"), asking.cancel("no"), asking.retry("no")):
        with pytest.raises(BatchNotFound, match="no batch 'no'"):
            await refused


# -- retry


async def test_dead_letters_of_a_finished_batch_are_tried_again(here: House) -> None:
    """The batch continues, ends again, and leaves as little in Redis as the first time."""
    await here.submit("nightly", 4)
    await here.work_until_over("nightly", {1: "failed", 3: "failed"})
    assert await here.operator.retry("nightly") == 2
    assert await here.batch("nightly") == ("running", False)
    assert await here.keys("eval:batch:{nightly}")
    await here.work_until_over("nightly")
    assert await here.states("nightly") == ["2 completed", "1 completed", "2 completed", "1 completed"]
    assert await here.batch("nightly") == ("completed", True)
    assert await here.keys("eval:*{nightly}*") == []


async def test_an_operators_retry_resets_the_retry_count(here: House) -> None:
    """This holds whatever an evaluation had used before."""
    await here.submit("nightly", 1)
    for outcome in ("retrying", "dies", "retrying", "failed"):
        await here.run_cycle()
        await here.work("nightly", {1: outcome})
    assert (await here.opening("nightly", 1, 4)).retries == 0
    assert await here.operator.retry("nightly") == 1
    opening = await here.opening("nightly", 1, 5)
    assert (opening.reason, opening.retries) == (p.OpeningReason.OPERATOR, SPEC.retries)


async def test_only_the_chosen_dead_letters_are_retried(here: House) -> None:
    """Other dead letters, completed evaluations and other batches are unchanged."""
    await here.submit("nightly", 3)
    await here.submit("other", 1)
    await here.work_until_over("other", {1: "failed"})
    await here.work_until_over("nightly", {1: "failed", 2: "failed"})
    chosen = [evaluation_id("nightly", 2), evaluation_id("nightly", 3), evaluation_id("other", 1), "?"]
    assert await here.operator.retry("nightly", only=chosen) == 1
    assert await here.states("nightly") == ["1 failed", "2 queued", "1 completed"]
    assert await here.states("other") == ["1 failed"]
    await here.work_until_over("nightly")


async def test_a_retry_without_dead_letters_changes_nothing(here: House) -> None:
    """The batch is over, and stays so."""
    await here.submit("nightly", 1)
    await here.work_until_over("nightly")
    assert await here.operator.retry("nightly") == 0
    assert await here.batch("nightly") == ("completed", True)
    assert await here.keys("eval:*{nightly}*") == []
    assert [type_ for type_, _, _ in await requests(here, "nightly")] == ["accepted", "finished"]


async def test_dead_letters_of_a_running_batch_are_tried_again(here: House) -> None:
    """A retry need not wait for the end of the batch."""
    await here.submit("nightly", 2)
    await here.run_cycle()
    await here.work("nightly", {1: "failed", 2: "goes on"})
    assert await here.operator.retry("nightly") == 1
    assert await here.work("nightly") == [1]
    assert await here.states("nightly") == ["2 completed", "1 running"]


async def test_a_batch_out_of_time_may_be_tried_again(here: House) -> None:
    """Its time limit has passed and no longer applies, whether or not everything had ended already."""
    for batch_id, rounds in (("over", 3), ("not yet over", 1)):
        await here.submit(batch_id, 6)
        await here.run_cycle()
        await here.work(batch_id, {2: "failed"})
        await here.alter("UPDATE batches SET deadline = now() WHERE batch_id = %s", batch_id)
        await here.run_cycle(rounds)
        assert (await here.batch(batch_id)) == ("expired", rounds == 3)
        assert await here.operator.retry(batch_id) >= 1
        await here.work_until_over(batch_id)
        assert await here.batch(batch_id) == ("completed", True)
        assert {words.split()[1] for words in await here.states(batch_id)} == {"completed"}


async def test_a_batch_that_finishes_while_it_is_reopened_continues(here: House) -> None:
    """Its coordinator finds nothing open, a moment before the operator reopens an evaluation."""
    await here.submit("nightly", 1)
    await here.work_until_over("nightly", {1: "failed"})
    await here.ledger.reopen("nightly", by="ada")
    batch = await here.operator.batch("nightly")
    await here.run_cycle()
    assert await here.batch("nightly") == ("completed", True)
    assert await here.another().reopen(batch, [evaluation_id("nightly", 1)]) == 1
    assert await here.batch("nightly") == ("running", False)
    await here.work_until_over("nightly")
