"""The contract of the executor registry."""

from dataclasses import replace

from taskqueue.executor_registry import INSTANCE_TTL, ExecutorInstance

ALICE = ExecutorInstance("alice-1", "alice", host="there", pid=7, slots=4, busy=2, project="p")


BOB = ExecutorInstance("bob-1", "bob")


async def test_an_executor_with_a_heartbeat_is_live(queues):
    """Only requested executors are returned, with all fields unchanged."""
    assert await queues.executor_registry.filter_live(["alice-1"]) == set()
    assert await queues.executor_registry.live() == []
    await queues.executor_registry.heartbeat(ALICE)
    await queues.executor_registry.heartbeat(BOB)
    assert await queues.executor_registry.filter_live(iter(["alice-1", "carol-1"])) == {"alice-1"}
    assert await queues.executor_registry.filter_live([]) == set()
    present = await queues.executor_registry.live()
    assert sorted(present, key=lambda each: each.name) == [ALICE, BOB]


async def test_the_last_heartbeat_counts(queues):
    """An executor is listed once, with its last report."""
    await queues.executor_registry.heartbeat(ALICE)
    await queues.executor_registry.heartbeat(replace(ALICE, busy=4))
    assert await queues.executor_registry.live() == [replace(ALICE, busy=4)]


async def test_a_deregistered_executor_is_gone_at_once(queues):
    """Others need not wait for its expiry; deregistering again changes nothing."""
    await queues.executor_registry.heartbeat(ALICE)
    for _ in range(2):
        await queues.executor_registry.deregister("alice-1")
        assert await queues.executor_registry.filter_live(["alice-1"]) == set()
        assert await queues.executor_registry.live() == []


async def test_an_executor_without_heartbeats_expires(queues):
    """Its heartbeat expires while other executors continue."""
    await queues.executor_registry.heartbeat(ALICE)
    await queues.executor_registry.heartbeat(BOB)
    await queues.pass_time(INSTANCE_TTL * 0.75)
    await queues.executor_registry.heartbeat(BOB)
    assert await queues.executor_registry.filter_live(["alice-1", "bob-1"]) == {"alice-1", "bob-1"}
    await queues.pass_time(INSTANCE_TTL / 4)
    assert await queues.executor_registry.filter_live(["alice-1", "bob-1"]) == {"bob-1"}
    assert await queues.executor_registry.live() == [BOB]


async def test_an_executor_is_live_again_after_data_loss(queues):
    """The next heartbeat is enough."""
    await queues.executor_registry.heartbeat(ALICE)
    await queues.lose_everything()
    assert await queues.executor_registry.live() == []
    await queues.executor_registry.heartbeat(ALICE)
    assert await queues.executor_registry.live() == [ALICE]
