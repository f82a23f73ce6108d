"""What every form of the batch registry and of the executor registry does."""

from dataclasses import replace

from taskqueue.batch_registry import BatchEntry, BatchState
from taskqueue.executor_registry import INSTANCE_TTL, ExecutorInstance
from tests.conformance.taskqueue.queue_forms import BATCH, OTHER

ALICE = ExecutorInstance("alice-1", "alice", host="there", pid=7, slots=4, busy=2, project="p")
BOB = ExecutorInstance("bob-1", "bob")


# The batch registry.


async def test_an_announced_batch_is_listed_with_its_spec(queues):
    """All that was said of it comes back as it was."""
    entry = BatchEntry(
        BATCH, BatchState.PAUSED, priority=7, project="p", partitions=("scoring", "target-0")
    )
    await queues.batch_registry.upsert(entry, b'{"spec": 1}')
    await queues.batch_registry.upsert(BatchEntry(OTHER), b"{}")
    assert sorted(await queues.batch_registry.list(), key=lambda each: each.batch_id) == [
        entry,
        BatchEntry(OTHER),
    ]
    assert await queues.batch_registry.spec(BATCH) == b'{"spec": 1}'


async def test_a_listing_may_change(queues):
    """The last word counts, and the batch is listed once."""
    await queues.batch_registry.upsert(BatchEntry(BATCH), b"1")
    await queues.batch_registry.upsert(BatchEntry(BATCH, BatchState.STOPPED), b"2")
    assert await queues.batch_registry.list() == [BatchEntry(BATCH, BatchState.STOPPED)]
    assert await queues.batch_registry.spec(BATCH) == b"2"


async def test_a_batch_that_is_taken_down_leaves_nothing_behind(queues):
    """Listing, spec and contexts go; taking it down again is harmless."""
    await queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    await queues.batch_registry.put_contexts(BATCH, {"e1": b"before"})
    for _ in range(2):
        await queues.batch_registry.unregister(BATCH)
        assert await queues.batch_registry.list() == []
        assert await queues.batch_registry.spec(BATCH) is None
        assert await queues.batch_registry.contexts(BATCH, ["e1"]) == [None]
        assert await queues.left_behind() == set()


async def test_lanes_are_found_by_line(queues):
    """What an executor says last of a line counts, and all of it goes with the batch."""
    assert await queues.batch_registry.lanes(BATCH) == {}
    await queues.batch_registry.set_lanes(
        BATCH, {"scoring": ["openai:a:judge"], "target-0": ["one", "two"]}
    )
    await queues.batch_registry.set_lanes(OTHER, {})
    assert await queues.batch_registry.lanes(BATCH) == {
        "scoring": ("openai:a:judge",),
        "target-0": ("one", "two"),
    }
    assert await queues.batch_registry.lanes(OTHER) == {}
    await queues.batch_registry.unregister(BATCH)
    assert await queues.batch_registry.lanes(BATCH) == {}
    assert await queues.left_behind() == set()


async def test_contexts_are_found_by_evaluation(queues):
    """Each in the place it was asked for; None where there is none; a later word replaces a former."""
    await queues.batch_registry.put_contexts(BATCH, {"e1": b"one", "e2": b"two"})
    await queues.batch_registry.put_contexts(BATCH, {"e2": b"second", "e3": b"\x00\xff"})
    await queues.batch_registry.put_contexts(BATCH, {})
    assert await queues.batch_registry.contexts(BATCH, ["e3", "e0", "e2", "e1"]) == [
        b"\x00\xff",
        None,
        b"second",
        b"one",
    ]
    assert await queues.batch_registry.contexts(OTHER, ["e1"]) == [None]
    assert await queues.batch_registry.contexts(BATCH, []) == []


async def test_a_lost_batch_registry_can_be_written_again(queues):
    """An empty batch registry is empty, not broken."""
    await queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    await queues.lose_everything()
    assert await queues.batch_registry.list() == []
    await queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    assert await queues.batch_registry.list() == [BatchEntry(BATCH)]


# The attendance.


async def test_who_beats_is_alive(queues):
    """Only those that were asked for are named; all that was said of them comes back."""
    assert await queues.executor_registry.filter_live(["alice-1"]) == set()
    assert await queues.executor_registry.live() == []
    await queues.executor_registry.heartbeat(ALICE)
    await queues.executor_registry.heartbeat(BOB)
    assert await queues.executor_registry.filter_live(iter(["alice-1", "carol-1"])) == {"alice-1"}
    assert await queues.executor_registry.filter_live([]) == set()
    present = await queues.executor_registry.live()
    assert sorted(present, key=lambda each: each.name) == [ALICE, BOB]


async def test_the_last_beat_counts(queues):
    """An executor is present once, as it last described itself."""
    await queues.executor_registry.heartbeat(ALICE)
    await queues.executor_registry.heartbeat(replace(ALICE, busy=4))
    assert await queues.executor_registry.live() == [replace(ALICE, busy=4)]


async def test_who_leaves_is_gone_at_once(queues):
    """Good order spares others the wait; leaving again is harmless."""
    await queues.executor_registry.heartbeat(ALICE)
    for _ in range(2):
        await queues.executor_registry.deregister("alice-1")
        assert await queues.executor_registry.filter_live(["alice-1"]) == set()
        assert await queues.executor_registry.live() == []


async def test_who_falls_silent_is_dead(queues):
    """Nobody has to say so: the lifetime passes, while others beat on."""
    await queues.executor_registry.heartbeat(ALICE)
    await queues.executor_registry.heartbeat(BOB)
    await queues.pass_time(INSTANCE_TTL * 0.75)
    await queues.executor_registry.heartbeat(BOB)
    assert await queues.executor_registry.filter_live(["alice-1", "bob-1"]) == {"alice-1", "bob-1"}
    await queues.pass_time(INSTANCE_TTL / 4)
    assert await queues.executor_registry.filter_live(["alice-1", "bob-1"]) == {"bob-1"}
    assert await queues.executor_registry.live() == [BOB]


async def test_an_executor_comes_back_after_everything_was_lost(queues):
    """The next beat is enough."""
    await queues.executor_registry.heartbeat(ALICE)
    await queues.lose_everything()
    assert await queues.executor_registry.live() == []
    await queues.executor_registry.heartbeat(ALICE)
    assert await queues.executor_registry.live() == [ALICE]
