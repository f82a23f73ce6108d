"""Accepting and publishing on real servers: commit first, publish in windows, recover after a crash."""

from collections.abc import AsyncIterator

import pytest

from coordinator.acceptance import accept
from coordinator.submission import NewEvaluation, Recall, SerialPlace
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.clock import utc_now
from eventlog.keys import DEFAULT_SHARDS
from projections.ledger.batch import NewBatch
from projections.ledger.contract import BatchExists
from taskqueue.batch_registry import BatchEntry
from taskqueue.tasks import Task
from tests.integration.coordinator.coordinating import SPEC, House, house


@pytest.fixture
async def here(redis_url: str, postgres_url: str) -> AsyncIterator[House]:
    async with house(redis_url, postgres_url) as made:
        yield made


# -- accepting


async def test_a_batch_runs_from_its_acceptance_to_its_end(here: House) -> None:
    """Accepted, published, processed, finished; and Redis keeps nothing of it but keys that expire."""
    await here.submit("nightly", 3)
    await here.run_cycle()
    assert await here.work("nightly") == [1, 2, 3]
    assert await here.states("nightly") == ["1 completed"] * 3
    await here.run_cycle()
    assert await here.batch("nightly") == ("completed", True)
    assert await here.keys("eval:*{nightly}*") == []
    assert await here.queues.batch_registry.list() == []
    assert all([await here.log.redis.ttl(key) > 0 for key in await here.keys("eval:*nightly.*")])


async def test_accepting_publishes_nothing(here: House) -> None:
    """Accepted means committed: a batch reaches Redis only in a coordinator's cycle."""
    await here.submit("nightly", 3)
    assert await here.keys("*nightly*") == []
    assert await here.states("nightly") == ["1 queued"] * 3


async def test_a_submission_that_fails_half_way_leaves_nothing_behind(here: House) -> None:
    """A batch is accepted whole or not at all."""

    async def broken() -> AsyncIterator[NewEvaluation]:
        for number in range(3_000):
            yield NewEvaluation(p.Case(id=f"case-{number}"))
        raise ValueError("row 3001 is no JSON")

    with pytest.raises(ValueError, match="row 3001"):
        await accept(here.ledger, NewBatch("nightly", SPEC), broken(), now=utc_now(), shards=DEFAULT_SHARDS)
    tables = ("batches", "evaluations", "events", "batch_events", "batch_progress")
    for table in tables:
        assert await here.ask(f"SELECT count(*) FROM {table}") == [(0,)]
    await here.submit("nightly", 1)
    await here.work_until_over("nightly")


async def test_a_batch_id_is_taken_once(here: House) -> None:
    """A second batch of the same name is refused, and changes nothing."""
    await here.submit("nightly", 2)
    with pytest.raises(BatchExists):
        await here.submit("nightly", 5)
    assert await here.states("nightly") == ["1 queued"] * 2


async def test_a_batch_without_cases_is_over_at_once(here: House) -> None:
    """No evaluation has to end first."""
    await here.submit("empty", 0)
    assert await here.batch("empty") == ("completed", True)
    await here.run_cycle()
    assert await here.keys("*empty*") == []


# -- windows


async def test_at_most_a_window_is_published(redis_url: str, postgres_url: str) -> None:
    """Redis stays small however large the batch is: more are published when enough have ended."""
    async with house(redis_url, postgres_url, window=4, page_size=2) as here:
        await here.submit("nightly", 9)
        await here.run_cycle(3)
        assert len(await here.keys("eval:*events:nightly*")) == 4
        await here.work("nightly", {4: "goes on"})
        await here.run_cycle(3)
        assert await here.work("nightly") == [5, 6, 7]
        await here.run_cycle(3)
        assert await here.work("nightly") == [8, 9]


async def test_waiting_serial_evaluations_count_as_published(redis_url: str, postgres_url: str) -> None:
    """A window counts its serial evaluations, too: their endings must not enlarge it without limit."""
    async with house(redis_url, postgres_url, window=4, page_size=2) as here:
        pairs = [NewEvaluation(p.Case(id=f"case-{n}"), serial=_after_odd(n)) for n in range(1, 13)]
        await here.submit_these("nightly", pairs)
        await here.run_cycle()
        assert await here.work("nightly", {3: "goes on"}) == [1, 3]
        await here.run_cycle()
        assert await here.work("nightly") == [2]
        await here.run_cycle(3)
        assert await here.work("nightly", {5: "goes on"}) == [5]
        await here.run_cycle(3)
        assert await here.work("nightly") == []


def _after_odd(number: int) -> SerialPlace | None:
    """Pair evaluations: each even one waits for the one before it."""
    return None if number % 2 else SerialPlace(number - 1, (Recall(number - 1),))


# -- crashes between two steps of publishing


async def test_a_crash_after_the_window_was_committed_is_recovered(here: House) -> None:
    """Postgres has the window, Redis does not: a later cycle finds the openings missing and publishes."""
    await here.submit("nightly", 2)
    batch = (await here.ledger.unfinished())[0]
    _, last_id = await here.ledger.next_window(batch, limit=10)
    assert await here.ledger.open_window(batch, last_id=last_id, size=2, epochs=await here.log.epochs())
    await here.work_until_over("nightly")
    assert await here.states("nightly") == ["1 completed"] * 2


async def test_a_crash_between_log_and_queue_is_recovered(here: House) -> None:
    """The openings are in the log and the tasks are not: once the queue is drained, they are enqueued."""
    await here.submit("nightly", 3)
    await here.run_cycle()
    await here.queues.tasks.delete("nightly")
    await here.work_until_over("nightly")
    assert await here.states("nightly") == ["1 completed"] * 3


async def test_a_crash_in_the_middle_of_a_window_is_recovered(here: House) -> None:
    """One was published whole, one only in the log, one not at all: each is completed."""
    await here.submit("nightly", 3)
    await here.run_cycle()
    await here.takes("nightly")
    await here.queues.tasks.delete("nightly")
    third = evaluation_id("nightly", 3)
    await here.log.redis.delete(*await here.keys(f"eval:*{third}"))
    await here.queues.tasks.enqueue("nightly", Task(evaluation_id("nightly", 1), 1))
    await here.work_until_over("nightly")
    assert await here.states("nightly") == ["1 completed"] * 3


async def test_a_window_opened_in_an_old_epoch_is_opened_again(here: House) -> None:
    """Redis was lost between commit and publication: the next attempt is opened."""
    await here.submit("nightly", 1)
    batch = (await here.ledger.unfinished())[0]
    _, last_id = await here.ledger.next_window(batch, limit=10)
    assert await here.ledger.open_window(batch, last_id=last_id, size=1, epochs=["long ago"] * 4)
    await here.work_until_over("nightly")
    assert await here.states("nightly") == ["2 completed"]
    assert (await here.opening("nightly", 1, 2)).retries == SPEC.retries


async def test_an_attempt_that_was_opened_and_never_published_is_published(here: House) -> None:
    """Postgres has the next attempt, Redis does not: a coordinator crashed in between."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly", {1: "retrying"})
    await here.run_cycle()
    second = evaluation_id("nightly", 1)
    await here.queues.tasks.delete("nightly")
    await here.log.redis.delete(*await here.keys(f"eval:*{second}"))
    await here.work_until_over("nightly")
    assert await here.states("nightly") == ["2 completed"]


async def test_a_crash_before_the_batch_registry_was_cleared_is_recovered(here: House) -> None:
    """The batch is over in Postgres and still in the registry: the next cycle unregisters it."""
    await here.submit("nightly", 1)
    await here.run_cycle()
    await here.work("nightly")
    assert await here.ledger.finish("nightly")
    assert await here.keys("eval:batch:{nightly}")
    await here.run_cycle()
    assert await here.keys("eval:*{nightly}*") == []
    assert await here.queues.batch_registry.list() == []


async def test_registry_entries_of_unknown_batches_are_kept(here: House) -> None:
    """An entry of a batch that is not in this database is not unregistered."""
    await here.queues.batch_registry.upsert(BatchEntry("elsewhere"), b"{}")
    await here.run_cycle()
    assert [entry.batch_id for entry in await here.queues.batch_registry.list()] == ["elsewhere"]
