"""The epochs that a coordinator observes: one per shard, each with a grace period."""

from datetime import timedelta

from coordinator.epochs import EpochTracker
from eventlog.keys import shard_of
from eventlog.memory import MemoryEventLog
from taskqueue.executor_registry import ExecutorInstance
from taskqueue.memory import MemoryExecutorRegistry

GRACE = timedelta(seconds=10)
KEY = "evaluation-1"


class Shards(MemoryEventLog):
    """A log whose shards lose their data one by one."""

    def __init__(self) -> None:
        super().__init__(lambda: 0)
        self.now = ["a", "a", "a", "a"]

    async def epochs(self) -> list[str]:
        return list(self.now)


class Watched:
    """An epoch tracker with a clock that the test sets."""

    def __init__(self) -> None:
        self.log = Shards()
        self.time = 0.0
        self.executor_registry = MemoryExecutorRegistry(lambda: self.time)
        self.epochs = EpochTracker(self.log, self.executor_registry, grace=GRACE, clock=lambda: self.time)


async def test_a_coordinator_that_has_just_started_waits() -> None:
    """It can't know how old the epoch is, so the grace period passes first."""
    watched = Watched()
    await watched.epochs.refresh()
    assert not watched.epochs.is_settled(KEY)
    watched.time = 9.9
    assert not watched.epochs.all_settled
    watched.time = 10.0
    assert watched.epochs.is_settled(KEY)
    assert watched.epochs.all_settled


async def test_a_further_read_does_not_restart_the_grace_period() -> None:
    """Only a changed epoch restarts it."""
    watched = Watched()
    for watched.time in (0.0, 5.0, 10.0):
        await watched.epochs.refresh()
    assert watched.epochs.all_settled


async def test_data_loss_restarts_the_grace_period_of_its_shard_only() -> None:
    """The other shards stay settled."""
    watched = Watched()
    await watched.epochs.refresh()
    watched.time = 20.0
    lost = shard_of(KEY, 4)
    spared = next(key for key in map(str, range(99)) if shard_of(key, 4) != lost)
    watched.log.now[lost] = "b"
    assert await watched.epochs.refresh() == watched.log.now
    assert watched.epochs.of(KEY) == "b"
    assert watched.epochs.of(spared) == "a"
    assert not watched.epochs.is_settled(KEY)
    assert watched.epochs.is_settled(spared)
    assert not watched.epochs.all_settled
    watched.time = 30.0
    assert watched.epochs.all_settled


async def test_returned_epochs_do_not_change_afterwards() -> None:
    """A later read does not mutate the list that callers write into rows."""
    watched = Watched()
    before = await watched.epochs.refresh()
    watched.log.now[0] = "b"
    await watched.epochs.refresh()
    assert before == ["a"] * 4


async def test_the_grace_period_ends_when_known_executors_confirm_the_epoch() -> None:
    """Heartbeats carry the confirmation; until then, earlier publications wait."""
    watched = Watched()
    watched.log.now = ["a-1"] * 4
    for watched.time in (0.0, 5.0, 10.0):
        await watched.executor_registry.heartbeat(ExecutorInstance("i-1", "one", epochs=("a-1",) * 4))
        await watched.epochs.refresh()
    watched.log.now = ["a-2"] * 4
    await watched.epochs.refresh()
    assert not watched.epochs.all_settled
    await watched.executor_registry.heartbeat(ExecutorInstance("i-1", "one", epochs=("a-2",) * 4))
    await watched.epochs.refresh()
    assert watched.epochs.all_settled
