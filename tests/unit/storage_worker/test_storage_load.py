"""The storage worker when there is much to do: what goes first, how much at a time, and what it keeps."""

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
from storage_worker.wake_ups import WakeUpBatch
from tests.builders import history, records
from tests.storing import GAP_WARNING, World

STRAIGHT = "queued provisioning running responded scored completed"


@pytest.fixture
def world() -> World:
    return World()


class OrderOfCommits(MemoryStore):
    """Remembers which evaluations were committed together."""

    def __init__(self) -> None:
        super().__init__(lambda: 0.0)
        self.committed: list[list[str]] = []

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        self.committed.append([change.evaluation_id for change in changes])
        return await super().commit(changes)


async def test_under_lag_those_that_have_come_to_their_end_go_first(world, monkeypatch):
    """When more is waiting than one transaction takes, results come before news."""
    monkeypatch.setattr(storage_module, "MAX_SLICE", 8)
    running = [f"a{n}" for n in range(8)]
    ended = [f"b{n}" for n in range(8)]
    for key in running + ended:
        words = "queued provisioning" + (" running completed" if key in ended else "")
        events = history(words, evaluation_id=key)
        await world.log.append([Append(key, records(events), await world.log.epoch(key))])
    tables = OrderOfCommits()
    await world.storage(tables=tables).process(WakeUpBatch(running + ended))
    assert tables.committed == [ended, running]


async def test_large_streams_are_taken_in_small_slices(world, monkeypatch):
    """What one transaction takes goes by bytes, so that memory does not go by the number of wake-ups."""
    monkeypatch.setattr(storage_module, "SLICE_BYTES", 10_000)
    ids = [f"e{n:02}" for n in range(40)]
    for key in ids:
        world.xadd(*history(STRAIGHT, evaluation_id=key))
    tables = OrderOfCommits()
    await world.storage(tables=tables).process(WakeUpBatch(ids))
    assert {len(together) for together in tables.committed} == {8}
    assert [key for together in tables.committed for key in together] == ids


def items_held(thing: object) -> int:
    """Count the items in every container that a thing holds, ports aside."""
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


async def test_nothing_is_kept_of_an_evaluation_that_was_looked_at(world, monkeypatch, caplog):
    """Five thousand of them, ended, waiting and bad, leave a worker as large as fifty did, but for
    the warnings it has given and the gaps it shows, which are remembered up to a number.
    """
    monkeypatch.setattr(gaps, "REMEMBERED_WARNINGS", 10)
    monkeypatch.setattr(metrics, "MAX_GAPS", 10)
    caplog.set_level("CRITICAL")
    storage = world.storage(breaker=GapBreaker(BreakerLimits(rate=1.0)))

    async def look_at(ids: range) -> int:
        for n in ids:
            queued, _, running, *rest = history(STRAIGHT, evaluation_id=f"e{n}")
            world.xadd(queued, running, *(rest if n % 2 else ()))
            world.xadd(queued, event=b"garbage")
        world.wait(GAP_WARNING + timedelta(seconds=1))
        await storage.process(WakeUpBatch([f"e{n}" for n in ids]))
        return items_held(storage)

    few, many = await look_at(range(50)), await look_at(range(50, 5_000))
    assert (few, storage.counts.gaps_warned) == (many, 5_000)
    assert len(storage._gaps._warned) == 10
