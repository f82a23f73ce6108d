"""What people ask of batches, on real servers: each may be asked again, and by anybody."""

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
from tests.integration.coordinating import ANSWER, SPEC, House, house
from tests.waiting import until


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url, window=4, page_size=2) as made:
        yield made


async def asked(here: House, batch_id: str) -> list[tuple[str, str, str]]:
    """List what was asked of a batch."""
    sought = "SELECT type, by_whom, reason FROM batch_events WHERE batch_id = %s ORDER BY number"
    return [(row[0], row[1], row[2]) for row in await here.ask(sought, batch_id)]


# -- cancel


async def test_cancelling_ends_everything_at_once(here: House) -> None:
    """Published or not, in hand or not: all of it has ended, and the batch is over."""
    await here.submit("nightly", 9)
    await here.run_cycle()
    await here.work("nightly", {2: "goes on", 3: "retrying later", 4: "failed"})
    await here.operator.cancel("nightly", reason="too dear")
    assert await here.standing("nightly") == [
        "1 completed", "2 cancelled", "2 cancelled", "1 failed", *["2 cancelled"] * 5,
    ]  # fmt: skip
    assert await here.batch("nightly") == ("cancelled", True)
    assert await asked(here, "nightly") == [
        ("accepted", "user", ""), ("cancelled", "ada", "too dear"), ("finished", "coordinator", ""),
    ]  # fmt: skip
    assert await here.keys("eval:tasks:*") == []


async def test_a_cancelled_batch_stays_in_the_registry_until_executors_have_seen_it(
    here: House,
) -> None:
    """It is over before they look again: were it taken down at once, what they have in hand would go on."""
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
    """No sweep looks at what has ended: whoever writes an ending wakes the worker that lets it go."""
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
    """Name the evaluations that storage workers are asked to look at."""
    entries: list[Any] = []
    for shard in range(DEFAULT_SHARDS):
        entries += await here.log.redis.xrange(wake_key(shard)) or []
    return {fields[b"id"].decode() for _, fields in entries}


async def test_an_owner_in_flight_is_fenced_and_its_answer_kept(here: House) -> None:
    """It may say no more, but what was paid for is on record, and counted."""
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
    assert await here.standing("nightly") == ["2 cancelled"]


async def spent(here: House, batch_id: str) -> float:
    """Say what a batch has cost so far."""
    await here.store(batch_id)
    [(cost,)] = await here.ask("SELECT sum(cost_usd) FROM batch_progress WHERE batch_id = %s", batch_id)
    return float(cost)


async def test_an_ending_that_nobody_was_told_of_is_told_later(here: House) -> None:
    """A coordinator died between Postgres and Redis: the next one fences the owner off."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "goes on"})
    key = evaluation_id("nightly", 1)
    names = await here.keys(f"eval:*{key}")
    bodies = [await here.log.redis.dump(name) for name in names]
    await here.operator.cancel("nightly")
    # As if the ending had never been appended, nor marked.
    for name, body in zip(names, bodies, strict=True):
        await here.log.redis.restore(name, 0, body or b"", replace=True)
    await here.alter("UPDATE evaluations SET published = false")
    await here.run_cycle()
    here.owned[key].record(ANSWER)
    with pytest.raises(AttemptLost):
        await here.owned[key].acknowledged()
    assert await here.ask("SELECT published FROM evaluations") == [(True,)]


async def test_cancelling_twice_changes_nothing(here: House) -> None:
    """At once by two people, and once more when it is over."""
    await here.submit("nightly", 5)
    await here.run_cycle()
    await asyncio.gather(here.operator.cancel("nightly"), here.operator.cancel("nightly"))
    assert await here.standing("nightly") == ["2 cancelled"] * 5
    with pytest.raises(OperationRejected, match="nothing to cancel"):
        await here.operator.cancel("nightly")
    assert [what for what, _, _ in await asked(here, "nightly")] == ["accepted", "cancelled", "finished"]


async def test_a_cancel_that_broke_off_is_finished_by_whoever_goes_round(here: House) -> None:
    """What was asked is in Postgres; the rest follows from it."""
    await here.submit("nightly", 5)
    await here.run_cycle()
    await here.ledger.request_state("nightly", "cancelled", by="ada")
    await here.run_cycle()
    [entry] = await here.queues.batch_registry.list()
    assert entry.state is BatchState.STOPPED
    await here.run_cycle()
    assert await here.standing("nightly") == ["2 cancelled"] * 5
    assert await here.batch("nightly") == ("cancelled", True)


async def test_what_is_cancelled_stays_so(here: House) -> None:
    """Neither resumed nor retried."""
    await here.submit("nightly", 1)
    await here.operator.cancel("nightly")
    for refused in (here.operator.resume("nightly"), here.operator.retry("nightly")):
        with pytest.raises(OperationRejected, match="cancelled"):
            await refused


# -- pause and resume


async def test_pausing_starts_nothing_new(here: House) -> None:
    """No window, no retry, no attempt for the lost; executors see it, and go on with what they have."""
    await here.submit("nightly", 9)
    await here.run_cycle()
    await here.operator.pause("nightly", reason="lunch")
    [entry] = await here.queues.batch_registry.list()
    assert entry.state is BatchState.PAUSED
    await here.work("nightly", {1: "dies", 2: "retrying", 3: "failed"})
    await here.run_cycle(3)
    assert await here.standing("nightly") == [
        "1 running", "1 retrying", "1 failed", "1 completed", *["1 queued"] * 5,
    ]  # fmt: skip
    assert len(await here.keys("eval:*events:nightly*")) == 4
    with pytest.raises(OperationRejected, match="paused already"):
        await here.operator.pause("nightly")


async def test_resuming_goes_on(here: House) -> None:
    """All that waited is done."""
    await here.submit("nightly", 9)
    await here.run_cycle()
    await here.operator.pause("nightly")
    await here.work("nightly", {1: "dies", 2: "retrying"})
    await here.operator.resume("nightly")
    [entry] = await here.queues.batch_registry.list()
    assert entry.state is BatchState.RUNNING
    await here.work_until_over("nightly")
    assert await here.standing("nightly") == ["2 completed"] * 2 + ["1 completed"] * 7
    with pytest.raises(OperationRejected, match="nothing to resume"):
        await here.operator.resume("nightly")
    with pytest.raises(OperationRejected, match="nothing to pause"):
        await here.operator.pause("nightly")


async def test_a_paused_batch_that_has_ended_is_over(here: House) -> None:
    """What was in hand was all there was."""
    await here.submit("nightly", 2)
    await here.run_cycle()
    await here.operator.pause("nightly")
    await here.work("nightly")
    await here.run_cycle()
    assert await here.batch("nightly") == ("completed", True)


async def test_nobody_knows_a_batch_that_is_not_there(here: House) -> None:
    """Each request says so."""
    asking = here.operator
    for refused in (asking.pause("no"), asking.resume("no"), asking.cancel("no"), asking.retry("no")):
        with pytest.raises(BatchNotFound, match="no batch 'no'"):
            await refused


# -- retry


async def test_dead_letters_of_a_finished_batch_are_tried_again(here: House) -> None:
    """The batch goes on, comes to its end again, and leaves as little behind as the first time."""
    await here.submit("nightly", 4)
    await here.work_until_over("nightly", {1: "failed", 3: "failed"})
    assert await here.operator.retry("nightly") == 2
    assert await here.batch("nightly") == ("running", False)
    assert await here.keys("eval:batch:{nightly}")
    await here.work_until_over("nightly")
    assert await here.standing("nightly") == ["2 completed", "1 completed", "2 completed", "1 completed"]
    assert await here.batch("nightly") == ("completed", True)
    assert await here.keys("eval:*{nightly}*") == []


async def test_an_operator_gives_all_retries_anew(here: House) -> None:
    """Whatever an evaluation had used up before."""
    await here.submit("nightly", 1)
    for outcome in ("retrying", "dies", "retrying", "failed"):
        await here.run_cycle()
        await here.work("nightly", {1: outcome})
    assert (await here.opening("nightly", 1, 4)).retries == 0
    assert await here.operator.retry("nightly") == 1
    opening = await here.opening("nightly", 1, 5)
    assert (opening.reason, opening.retries) == (p.OpeningReason.OPERATOR, SPEC.retries)


async def test_only_what_was_chosen_is_tried_again(here: House) -> None:
    """Not other dead letters, not what has completed, and nothing of another batch."""
    await here.submit("nightly", 3)
    await here.submit("other", 1)
    await here.work_until_over("other", {1: "failed"})
    await here.work_until_over("nightly", {1: "failed", 2: "failed"})
    chosen = [evaluation_id("nightly", 2), evaluation_id("nightly", 3), evaluation_id("other", 1), "?"]
    assert await here.operator.retry("nightly", only=chosen) == 1
    assert await here.standing("nightly") == ["1 failed", "2 queued", "1 completed"]
    assert await here.standing("other") == ["1 failed"]
    await here.work_until_over("nightly")


async def test_a_retry_of_nothing_leaves_the_batch_as_it_is(here: House) -> None:
    """There are no dead letters: it is over, and stays so."""
    await here.submit("nightly", 1)
    await here.work_until_over("nightly")
    assert await here.operator.retry("nightly") == 0
    assert await here.batch("nightly") == ("completed", True)
    assert await here.keys("eval:*{nightly}*") == []
    assert [what for what, _, _ in await asked(here, "nightly")] == ["accepted", "finished"]


async def test_dead_letters_of_a_running_batch_are_tried_again(here: House) -> None:
    """Nobody has to wait for its end."""
    await here.submit("nightly", 2)
    await here.run_cycle()
    await here.work("nightly", {1: "failed", 2: "goes on"})
    assert await here.operator.retry("nightly") == 1
    assert await here.work("nightly") == [1]
    assert await here.standing("nightly") == ["2 completed", "1 running"]


async def test_a_batch_out_of_time_may_be_tried_again(here: House) -> None:
    """Its limit has passed and does not count any more, whether or not everything had ended already."""
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
        assert {words.split()[1] for words in await here.standing(batch_id)} == {"completed"}


async def test_a_batch_that_is_ended_while_it_is_reopened_goes_on(here: House) -> None:
    """Its coordinator sees that nothing is open, a moment before the operator opens something."""
    await here.submit("nightly", 1)
    await here.work_until_over("nightly", {1: "failed"})
    await here.ledger.reopen("nightly", by="ada")
    batch = await here.operator.batch("nightly")
    await here.run_cycle()
    assert await here.batch("nightly") == ("completed", True)
    assert await here.another().reopen(batch, [evaluation_id("nightly", 1)]) == 1
    assert await here.batch("nightly") == ("running", False)
    await here.work_until_over("nightly")
