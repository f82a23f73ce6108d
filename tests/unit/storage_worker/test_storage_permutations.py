"""The tables do not depend on arrival order, duplicates, the split into passes or the number of workers."""

import asyncio
from collections.abc import Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from itertools import permutations
from random import Random
from typing import Any

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings

from eventlog.codec import RawEntry
from eventlog.events import Event, EventKey
from eventlog.log import CommitMark, LogReader
from projections.folds.change import Change, EvaluationRow, StoredEvent
from projections.store.contract import CommitResult
from projections.store.memory import MemoryStore
from storage_worker.storage import Storage
from tests.builders import EVALUATION, event, history
from tests.disordered import arrivals, in_order, lives
from tests.dumps import memory_dump
from tests.storage_world import GAP_POLICY, World

# Any order, any duplicates, any split, any number of workers.


class Interruptible(MemoryStore):
    """Lets other workers run before every call."""

    async def rows(self, evaluation_ids: Sequence[str]) -> dict[str, EvaluationRow]:
        await asyncio.sleep(0)
        return dict(await super().rows(evaluation_ids))

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        await asyncio.sleep(0)
        return await super().commit(changes)


async def in_one_pass(events: Sequence[Event]) -> MemoryStore:
    """Store all events in order, with one worker, in one pass."""
    world = World()
    world.xadd(*events)
    await world.storage().store(sorted({each.evaluation_id for each in events}))
    return world.tables


async def in_many_passes(random: Random, events: Sequence[Event]) -> tuple[MemoryStore, int]:
    """Store with up to three workers: random evaluations at random times, in turn or concurrently."""
    world = World()
    tables = Interruptible(lambda: 0.0)
    workers = [world.storage(tables=tables) for _ in range(random.randint(1, 3))]
    ids = sorted({each.evaluation_id for each in events})
    for each in events:
        world.xadd(each)
        if random.random() < 0.4:
            active = random.sample(workers, random.randint(1, len(workers)))
            shares = [random.sample(ids, random.randint(1, len(ids))) for _ in active]
            await asyncio.gather(*(w.store(share) for w, share in zip(active, shares, strict=True)))
    await asyncio.gather(*(worker.store(ids) for worker in workers))
    return tables, sum(worker.counts.lost_races for worker in workers)


def test_any_arrival_gives_the_same_tables():
    """The tables are byte for byte equal: every event applied, nothing quarantined, no gap bridged."""
    races = 0

    @given(st.randoms(use_true_random=False))
    @settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
    def check_one(random: Random) -> None:
        nonlocal races
        written = lives(random)
        tables, lost_races = asyncio.run(in_many_passes(random, arrivals(random, written)))
        races += lost_races
        assert memory_dump(tables) == memory_dump(asyncio.run(in_one_pass(in_order(written))))
        assert {kept.verdict for kept in tables.events.values()} == {"applied"}
        assert (tables.quarantined, tables.bridges) == ({}, {})
        assert len(tables.events) == len(in_order(written))

    check_one()
    assert races > 0, "without a lost compare-and-set this shows nothing about several workers"


# All interleavings of two workers over one evaluation.


class Turn:
    """A point at which a worker can be interrupted."""

    def __await__(self) -> Generator[None]:
        yield


class SteppedLog:
    """A log whose reader waits for its turn before it reads."""

    def __init__(self, log: LogReader) -> None:
        self.log, self.shards = log, log.shards

    async def read(self, evaluation_ids: Sequence[str], *, limit: int) -> list[list[RawEntry]]:
        await Turn()
        return await self.log.read(evaluation_ids, limit=limit)

    async def committed(self, evaluation_ids: Sequence[str]) -> list[EventKey | None]:
        return await self.log.committed(evaluation_ids)

    async def closing(self, evaluation_ids: Sequence[str]) -> list[bool]:
        return await self.log.closing(evaluation_ids)

    async def settle(self, marks: Sequence[CommitMark]) -> None:
        await self.log.settle(marks)

    async def now_ms(self) -> int:
        return await self.log.now_ms()


class SteppedTables(MemoryStore):
    """Tables whose callers wait for their turn before they read rows, compare or commit."""

    async def rows(self, evaluation_ids: Sequence[str]) -> dict[str, EvaluationRow]:
        await Turn()
        return dict(await super().rows(evaluation_ids))

    async def stored(self, rows: Sequence[EvaluationRow]) -> Mapping[str, Mapping[EventKey, StoredEvent]]:
        await Turn()
        return await super().stored(rows)

    async def commit(self, changes: Sequence[Change]) -> CommitResult:
        await Turn()
        return await super().commit(changes)


class Scene:
    """Two workers with a wake-up for one evaluation, and a writer that continues to append."""

    def __init__(self, before: Sequence[Event], meanwhile: Sequence[Event], *, stored: bool) -> None:
        self.world = World()
        self.tables = SteppedTables(lambda: 0.0)
        self.world.xadd(*before)
        if stored:
            self.store_alone()
        self.workers = [self.worker(), self.worker()]
        self.actors: list[Coroutine[Any, Any, None]] = [w.store([EVALUATION]) for w in self.workers]
        self.actors.append(self.write(meanwhile))
        self.alive = [actor for actor in range(3) if self.step(actor)]

    def worker(self) -> Storage:
        return Storage(SteppedLog(self.world.log), self.tables, GAP_POLICY)

    async def write(self, events: Sequence[Event]) -> None:
        for each in events:
            await Turn()
            self.world.xadd(each)

    def step(self, actor: int) -> bool:
        """Run an actor up to its next turn; return whether there is one."""
        try:
            self.actors[actor].send(None)
        except StopIteration:
            return False
        return True

    def store_alone(self) -> None:
        """Let one worker store everything without interruption."""
        alone = self.worker().store([EVALUATION])
        with suppress(StopIteration):
            while True:
                alone.send(None)


def distinct(alive: Sequence[int], played: Sequence[int]) -> list[int]:
    """Return the actors of which one may be next: until a worker has had a turn, both are the same."""
    return [actor for actor in alive if actor != 1 or 0 in played]


def every_interleaving(make_scene: Callable[[], Scene]) -> Iterator[Scene]:
    """Run a scene once for every order in which its actors can take their turns, up to swapped workers."""
    unplayed: list[list[int]] = [[]]
    while unplayed:
        script, scene, played = unplayed.pop(), make_scene(), list[int]()
        while scene.alive:
            if len(played) < len(script):
                actor = script[len(played)]
            else:
                actor, *others = distinct(scene.alive, played)
                unplayed += ([*played, other] for other in others)
            played.append(actor)
            if not scene.step(actor):
                scene.alive.remove(actor)
        yield scene


def check(make_scene: Callable[[], Scene], expected: list[bytes]) -> tuple[int, int]:
    """Compare every outcome with the expected one; return the number of outcomes and of lost races."""
    scenes = races = 0
    for scene in every_interleaving(make_scene):
        scene.store_alone()  # the wake-up of the last event
        assert memory_dump(scene.tables) == expected
        scenes += 1
        races += sum(worker.counts.lost_races for worker in scene.workers)
    return scenes, races


def test_two_workers_over_every_order_of_four_events():
    """All 24 arrivals, with every interleaving of two passes at their port calls, give the same tables."""
    events = history("queued provisioning running completed")
    expected = memory_dump(asyncio.run(in_one_pass(events)))
    for arrived in permutations(events):
        scenes, races = check(partial(Scene, arrived, [], stored=False), expected)
        assert scenes >= 10
        assert races > 0


@pytest.mark.parametrize(
    "arrived",
    [
        history("queued provisioning running completed"),
        history("queued provisioning running completed")[::-1],
        [*history("queued retrying"), *history("queued:retry provisioning", attempt=2)],
        [*history("queued failed"), *history("queued:operator failed", attempt=2)],
        [*history("queued"), event("cancelled", attempt=2), *history("queued") * 2],
        [
            *history("queued provisioning"),
            event("provisioning", sequence=1, source="rival"),
            event("queued"),
        ],
        [event("queued"), event("queued:lost", attempt=2), *history("provisioning responded", first=1)],
    ],
    ids=["in order", "backwards", "retried", "reopened", "cancelled, repeated", "conflict", "stale"],
)
def test_two_workers_and_a_writer(arrived):
    """Events that arrive between any two port calls do not change the outcome."""
    expected = memory_dump(asyncio.run(in_one_pass(arrived)))
    scenes, races = check(lambda: Scene(arrived[:1], arrived[1:], stored=False), expected)
    assert scenes > 1_000
    assert races > 0
    scenes, _ = check(lambda: Scene(arrived[:2], arrived[2:], stored=True), expected)
    assert scenes >= 90
