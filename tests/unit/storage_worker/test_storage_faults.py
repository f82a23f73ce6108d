"""The storage worker with concurrent workers, failing ports and data that the database refuses."""

import asyncio
from collections import defaultdict, deque
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from eventlog.lifecycle import Phase
from eventlog.log import Append, LogUnavailable
from eventlog.timeline import Cursor
from projections.database.errors import DatabaseUnavailable, UnstorableData
from projections.folds.change import Change, EvaluationRow
from projections.store.contract import CommitResult
from projections.store.memory import MemoryStore
from storage_worker.storage import Storage
from tests.builders import EVALUATION, event, history, records
from tests.dumps import memory_dump
from tests.storage_world import World

STRAIGHT = "queued provisioning running responded scored completed"
Outcome = Literal["unreached", "reply lost", "fine"]


@pytest.fixture
def world() -> World:
    return World()


# Races.


class Overtaken(MemoryStore):
    """Runs a hook between the read of the rows and the commit, once."""

    def __init__(self, overtake) -> None:
        super().__init__(lambda: 0.0)
        self.overtake = overtake

    async def rows(self, evaluation_ids: Sequence[str]) -> dict[str, EvaluationRow]:
        found = dict(await super().rows(evaluation_ids))
        overtake, self.overtake = self.overtake, None
        if overtake:
            await overtake()
        return found


@pytest.mark.parametrize("known", [0, 2])
async def test_a_lost_race_is_read_again_before_the_wake_up_is_acknowledged(world, known):
    """A worker whose compare-and-set fails reads the row again and stores the remaining events."""
    events = history(STRAIGHT)

    async def another_worker_is_faster() -> None:
        await world.storage(tables=tables).store([EVALUATION])
        world.xadd(*events[4:])

    tables = Overtaken(None)
    if known:
        world.xadd(*events[:known])
        await world.storage(tables=tables).store([EVALUATION])
    world.xadd(*events[known:4])
    tables.overtake = another_worker_is_faster
    storage = world.storage(tables=tables)
    await storage.process([EVALUATION])
    assert (storage.counts.lost_races, storage.counts.events) == (1, {"applied": 2})
    assert tables.evaluations[EVALUATION].row.cursor == Cursor(1, 5, Phase.COMPLETED)
    assert [progress.total for progress in tables.progress.values()] == [1]


async def test_concurrent_workers_store_each_event_once(world):
    """However wake-ups are shared, the tables are those of a single worker."""

    class Slow(MemoryStore):
        async def rows(self, evaluation_ids: Sequence[str]) -> dict[str, EvaluationRow]:
            found = dict(await super().rows(evaluation_ids))
            await asyncio.sleep(0)
            return found

    ids = [f"e{n}" for n in range(20)]
    tables = Slow(lambda: 0.0)
    workers = [world.storage(tables=tables) for _ in range(3)]
    for word in range(6):
        world.xadd(*(history(STRAIGHT, evaluation_id=key)[word] for key in ids))
        await asyncio.gather(*(worker.process(ids) for worker in workers))
    await world.storage().process(ids)
    assert memory_dump(tables) == memory_dump(world.tables)
    assert sum(worker.counts.events["applied"] for worker in workers) == 120
    assert sum(worker.counts.lost_races for worker in workers) > 0


# Data that the database refuses.


class Refusing(MemoryStore):
    """Refuses all data of one evaluation, as a database does for values it cannot hold."""

    def __init__(self, refused: str) -> None:
        super().__init__(lambda: 0.0)
        self.refused = refused
        self.sizes: list[int] = []

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        self.sizes.append(len(changes))
        if any(change.evaluation_id == self.refused for change in changes):
            raise UnstorableData("out of range")
        return await super().commit(changes)


@pytest.mark.parametrize("bad", ["e00", "e13", "e49"])
async def test_data_that_cannot_be_stored_affects_only_its_evaluation(world, bad):
    """Bisection finds the evaluation; its bytes are quarantined with the reason, the others are stored."""
    ids = [f"e{n:02}" for n in range(50)]
    for key in ids:
        world.xadd(*history("queued provisioning running completed", evaluation_id=key))
    tables = Refusing(bad)
    storage = world.storage(tables=tables)
    await storage.process(ids)
    assert set(tables.evaluations) == set(ids) - {bad}
    assert {held.row.cursor.phase for held in tables.evaluations.values()} == {Phase.COMPLETED}
    kept = list(tables.quarantined.values())
    assert [(k.evaluation_id, k.reason, k.detail) for k in kept] == [
        (bad, "unstorable", "out of range")
    ] * 4
    assert storage.counts.quarantined == 4
    assert len(tables.sizes) <= 14


async def test_a_refused_evaluation_gets_no_commit_mark(world):
    """Its writer keeps its tail, and a second pass quarantines nothing twice."""
    events = history("queued provisioning")
    await world.log.append([Append(EVALUATION, records(events), await world.log.epoch(EVALUATION))])
    tables = Refusing(EVALUATION)
    for _ in range(2):
        await world.storage(tables=tables).process([EVALUATION])
    assert await world.log.committed([EVALUATION]) == [(0, -1)]
    assert len(tables.quarantined) == 2


async def test_the_unique_key_backs_up_the_compare_and_set(world):
    """If a row is behind its events, the stored event wins."""
    queued, claim = history("queued provisioning")
    world.xadd(queued)
    await world.storage().process([EVALUATION])
    world.tables.events[EVALUATION, 1, 1] = world.tables.events[EVALUATION, 1, 0]._replace(sequence=1)
    world.xadd(claim)
    await world.storage().process([EVALUATION])
    assert world.reasons() == ["unstorable"]
    assert world.cursor() == Cursor(1, 0, Phase.QUEUED)


# Outages.


class Faulty:
    """A port whose calls fail on demand, before or after they are executed."""

    def __init__(self, port: object, error: type[Exception]) -> None:
        self.port, self.error = port, error
        self.outcomes: defaultdict[str, deque[Outcome]] = defaultdict(deque)
        self.seen_outages: list[str | None] = []
        self.storage: Storage | None = None

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.port, name)
        if name not in self.outcomes:
            return member

        async def call(*args: Any, **kwargs: Any) -> Any:
            self.seen_outages.append(self.storage.outage if self.storage else None)
            outcome = self.outcomes[name].popleft() if self.outcomes[name] else "fine"
            if outcome == "unreached":
                raise self.error(f"{name} was not reached")
            answer = await member(*args, **kwargs)
            if outcome == "reply lost":
                raise self.error(f"the reply to {name} was lost")
            return answer

        return call


CALLS = [("log", call) for call in ("now_ms", "read", "settle")]
CALLS += [("tables", call) for call in ("rows", "months", "stored", "commit", "quarantine")]


@pytest.mark.parametrize("outcome", ["unreached", "reply lost"])
@pytest.mark.parametrize(("port", "call"), CALLS)
async def test_a_call_is_retried_through_an_outage_without_duplicates(world, port, call, outcome):
    """This also holds if the call was executed and only its reply was lost."""
    old = history("queued provisioning retrying")
    new = history("queued:retry provisioning running completed", attempt=2)
    rival = event("provisioning", sequence=1, source="rival")
    parts = [*old, new[0]], [*new[1:], rival]

    async def take(here: World, storage: Storage) -> list[bytes]:
        for part in parts:
            here.xadd(*part)
            here.xadd_fields("garbled", b"event", b"garbage")
            await storage.process([EVALUATION, "garbled"])
        return memory_dump(here.tables)

    log: Any = Faulty(world.log, LogUnavailable)
    tables: Any = Faulty(world.tables, DatabaseUnavailable)
    faulty = {"log": log, "tables": tables}[port]
    faulty.outcomes[call].extend([outcome, outcome, "fine", outcome])
    storage = faulty.storage = world.storage(log=log, tables=tables)
    calm = World()
    assert await take(world, storage) == await take(calm, calm.storage())
    assert any(outage and call in outage for outage in faulty.seen_outages)
    assert storage.outage is None


async def test_an_outage_and_its_end_are_each_logged_once(world, caplog):
    """The log has one line for the outage, not one for each retry."""
    caplog.set_level("INFO")
    log: Any = Faulty(world.log, LogUnavailable)
    log.outcomes["read"].extend(["unreached"] * 3)
    world.xadd(event("queued"))
    await world.storage(log=log).process([EVALUATION])
    assert [record.message for record in caplog.records] == [
        "Redis or Postgres is unavailable: retrying",
        "Redis and Postgres are available again",
    ]


async def test_a_sweep_raises_an_outage_to_its_caller(world):
    """Only wake-ups are retried; the sweep is repeated at its next interval."""
    tables: Any = Faulty(world.tables, DatabaseUnavailable)
    tables.outcomes["open_evaluations"].append("unreached")
    with pytest.raises(DatabaseUnavailable):
        await world.storage(tables=tables).sweep(unchanged_for=0, page=10)
