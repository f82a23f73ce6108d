"""The contract of the batch registry."""

from taskqueue.batch_registry import BatchEntry, BatchState
from tests.conformance.taskqueue.queue_forms import BATCH, OTHER


async def test_a_registered_batch_is_listed_with_its_spec(queues):
    """All fields of the entry are read back unchanged."""
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


async def test_a_batch_entry_can_be_replaced(queues):
    """The last entry counts, and the batch is listed once."""
    await queues.batch_registry.upsert(BatchEntry(BATCH), b"1")
    await queues.batch_registry.upsert(BatchEntry(BATCH, BatchState.STOPPED), b"2")
    assert await queues.batch_registry.list() == [BatchEntry(BATCH, BatchState.STOPPED)]
    assert await queues.batch_registry.spec(BATCH) == b"2"


async def test_an_unregistered_batch_leaves_no_keys(queues):
    """Entry, spec and contexts are deleted; deleting them again changes nothing."""
    await queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    await queues.batch_registry.put_contexts(BATCH, {"e1": b"before"})
    for _ in range(2):
        await queues.batch_registry.unregister(BATCH)
        assert await queues.batch_registry.list() == []
        assert await queues.batch_registry.spec(BATCH) is None
        assert await queues.batch_registry.contexts(BATCH, ["e1"]) == [None]
        assert await queues.left_behind() == set()


async def test_lanes_are_found_by_queue(queues):
    """Each queue of a batch has its list of lanes, and all are deleted with the batch."""
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
    """They are returned in the requested order, None if missing; a later one replaces an earlier."""
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
    """A registry that has lost its data is empty, and works."""
    await queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    await queues.lose_everything()
    assert await queues.batch_registry.list() == []
    await queues.batch_registry.upsert(BatchEntry(BATCH), b"{}")
    assert await queues.batch_registry.list() == [BatchEntry(BATCH)]
