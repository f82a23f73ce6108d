"""The storage worker under load: priority, size of transactions and memory."""

from collections import deque
from collections.abc import Sequence
from datetime import timedelta

import pytest

from eventlog.log import Append
from projections.folds.change import Change
from projections.store.contract import CommitResult
from projections.store.memory import MemoryStore
from storage_worker import gaps, metrics
from storage_worker import storage as storage_module
from storage_worker.gaps import BreakerLimits, GapBreaker
from tests.builders import history, records
from tests.storage_world import GAP_WARNING, World

STRAIGHT = "queued provisioning running responded scored completed"


@pytest.fixture
def world() -> World:
    return World()


class OrderOfCommits(MemoryStore):
    """Records which evaluations were committed together."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.committed: list[list[str]] = []

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        self.committed.append([change.evaluation_id for change in changes])
        return await super().commit(changes)


async def test_closed_evaluations_are_stored_first_under_lag(world, monkeypatch):
    """When more is waiting than one transaction takes, closing events have priority."""
    monkeypatch.setattr(storage_module, "MAX_SLICE", 8)
    running = [f"a{n}" for n in range(8)]
    ended = [f"b{n}" for n in range(8)]
    for key in running + ended:
        words = "queued provisioning" + (" running completed" if key in ended else "")
        events = history(words, evaluation_id=key)
        await world.log.append([Append(key, records(events), await world.log.epoch(key))])
    tables = OrderOfCommits()
    await world.storage(tables=tables).process(running + ended)
    assert tables.committed == [ended, running]


async def test_large_streams_are_stored_in_small_transactions(world, monkeypatch):
    """A transaction is limited in bytes, so memory does not grow with the number of wake-ups."""
    monkeypatch.setattr(storage_module, "SLICE_BYTES", 10_000)
    ids = [f"e{n:02}" for n in range(40)]
    for key in ids:
        world.xadd(*history(STRAIGHT, evaluation_id=key))
    tables = OrderOfCommits()
    await world.storage(tables=tables).process(ids)
    assert {len(together) for together in tables.committed} == {8}
    assert [key for together in tables.committed for key in together] == ids


def items_held(thing: object) -> int:
    """Count the items in every container that an object holds, without its ports."""
    inside: list[object]
    match thing:
        case dict():
            return len(thing) + sum(map(items_held, thing.values()))
        case list() | tuple() | set() | deque():
            return len(thing) + sum(map(items_held, thing))
        case _ if hasattr(thing, "__slots__"):
            inside = [getattr(thing, name) for name in thing.__slots__]
        case _:
            inside = [v for k, v in getattr(thing, "__dict__", {}).items() if k not in {"_log", "_tables"}]
    return sum(map(items_held, inside))


async def test_memory_does_not_grow_with_the_number_of_evaluations(world, monkeypatch, caplog):
    """Five thousand evaluations (ended, waiting and invalid) leave as many items as fifty do."""
    monkeypatch.setattr(gaps, "REMEMBERED_WARNINGS", 10)
    monkeypatch.setattr(metrics, "MAX_GAPS", 10)
    caplog.set_level("CRITICAL")
    storage = world.storage(breaker=GapBreaker(BreakerLimits(rate=1.0)))

    async def items_after(ids: range) -> int:
        for n in ids:
            queued, _, running, *rest = history(STRAIGHT, evaluation_id=f"e{n}")
            world.xadd(queued, running, *(rest if n % 2 else ()))
            world.xadd(queued, event=b"garbage")
        world.wait(GAP_WARNING + timedelta(seconds=1))
        await storage.process([f"e{n}" for n in ids])
        return items_held(storage)

    few, many = await items_after(range(50)), await items_after(range(50, 5_000))
    assert (few, storage.counts.gaps_warned) == (many, 5_000)
    assert len(storage._gaps._warned) == 10
