"""One seed, from start to verdict."""

import asyncio
import logging
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from eventlog.log import EXPIRY_SECONDS, CommitMark
from eventlog.memory import MemoryEventLog
from projections.store.memory import MemoryStore
from storage_worker.storage import Storage
from tests.dumps import memory_dump
from tests.simulation.checker import check
from tests.simulation.coordinator import Coordinating, People
from tests.simulation.embedder import Embedder
from tests.simulation.executor import QUEUE_SETTINGS, Executing
from tests.simulation.fault_injection import FaultInjector
from tests.simulation.foreign import Stranger
from tests.simulation.plans import last_wishes, plan_requests, plan_submissions
from tests.simulation.process import Process
from tests.simulation.profiles import Profile, profile_of
from tests.simulation.storage_process import GAP_POLICY, StorageWorker
from tests.simulation.virtual_loop import run_virtually
from tests.simulation.world import NO_FAULTS, Harm, Violation, World

SETTLE_TIME = 120.0
"""Virtual seconds within which a run without further faults must become idle."""


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of a run; tests replace one by a broken one."""

    log: type[MemoryEventLog] = MemoryEventLog
    tables: type[MemoryStore] = MemoryStore
    worker: type[StorageWorker] = StorageWorker


@dataclass(slots=True)
class Verdict:
    """The result of a run."""

    seed: int
    profile: Profile
    violations: list[Violation]
    seen: Counter[str]
    trace: list[tuple[float, str, str]]
    unended: dict[str, str] = field(default_factory=dict)
    """Evaluations that have not ended, and why that is correct."""


WHOLE = Parts()
PACKAGES = ("eventlog", "storage_worker", "projections", "coordinator", "executor", "taskqueue")


def simulate(seed: int, *, profile: Profile | None = None, parts: Parts = WHOLE) -> Verdict:
    """Run one seed: the same seed gives the same run, on every machine."""
    profile = profile or profile_of(seed)
    world = World(seed, profile, log=parts.log, tables=parts.tables)
    with _one_run(world, seed):
        simulation = Simulation(world, parts)
        run_virtually(simulation.play(), world.loop)
    return Verdict(seed, profile, world.violations, world.seen, world.trace, simulation.unended)


@contextmanager
def _one_run(world: World, seed: int) -> Iterator[None]:
    """Draw jitter from the seed, and collect errors that were only logged."""
    state = random.getstate()
    random.seed(seed)
    packages = [logging.getLogger(name) for name in PACKAGES]
    handler = _Witness(world)
    before = [(package.level, package.propagate) for package in packages]
    for package in packages:
        package.addHandler(handler)
        package.setLevel(logging.INFO if package.name == "coordinator" else logging.ERROR)
        package.propagate = False
    try:
        yield
    finally:
        random.setstate(state)
        for package, (level, propagate) in zip(packages, before, strict=True):
            package.removeHandler(handler)
            package.setLevel(level)
            package.propagate = propagate


class _Witness(logging.Handler):
    """Records an error that a component logged and survived."""

    def __init__(self, world: World) -> None:
        super().__init__(logging.INFO)
        self.world = world

    def emit(self, record: logging.LogRecord) -> None:
        """Record it, unless it is an injected fault."""
        if step := getattr(record, "next", None):
            self.world.seen[f"next: {step}"] += 1
        if record.levelno < logging.ERROR:
            return
        if record.msg == "too many gaps: bridging at once (degraded mode)":
            return
        cause = f" ({record.exc_info[1]!r})" if record.exc_info else ""
        self.world.violate(Harm.VIOLATION, f"logged by {record.name}: {record.getMessage()}{cause}")


class _Silent:
    """A log that a reader does not change."""

    def __init__(self, log: MemoryEventLog) -> None:
        self.shards, self.read, self.closing, self.now_ms = log.shards, log.read, log.closing, log.now_ms
        self.committed = log.committed

    async def settle(self, marks: Sequence[CommitMark]) -> None:
        """Print nothing."""


class Simulation:
    """The actors of one run, and its three phases: faults, recovery, verdict."""

    def __init__(self, world: World, parts: Parts) -> None:
        self.world, self.parts = world, parts
        self.stranger = Stranger(world)
        self.executors: list[Executing] = []
        self.workers: list[StorageWorker] = []
        self.coordinators: list[Coordinating] = []
        self.unended: dict[str, str] = {}

    async def play(self) -> None:
        """Run all phases."""
        until = self.world.random.uniform(6.0, 14.0)
        self._start(until)
        writing = asyncio.ensure_future(self.stranger.write(until=until)) if self._has_strangers else None
        await FaultInjector(self.world, self.executors, self.coordinators).go_on(until=until)
        self._calm_down()
        if writing:
            await writing
        await self._rest()
        await self._look_again()
        self.world.loop.leap(EXPIRY_SECONDS)
        await asyncio.sleep(2.5 * QUEUE_SETTINGS.release_interval)
        self.unended = check(self.world, self.stranger, self.executors, self.embedder)

    @property
    def _has_strangers(self) -> bool:
        return self.world.faults.strangers > 0

    def _start(self, until: float) -> None:
        draw, world = self.world.random, self.world
        submissions = plan_submissions(draw, until)
        requests = plan_requests(draw, submissions, until)
        for number in range(draw.choice((1, 1, 2))):
            self.coordinators.append(Coordinating(world, f"coordinator-{number}"))
        for number in range(draw.randint(1, 3)):
            self.workers.append(self.parts.worker(world, f"storage-{number}"))
        for number in range(draw.randint(1, 3)):
            self.executors.append(Executing(world, f"executor-{number}"))
        half = len(requests) // 2
        self.people = [
            People(world, name, submissions=submissions, requests=chosen)
            for name, chosen in (("ann", requests[:half]), ("bob", requests[half:]))
        ]
        self.embedder = Embedder(world, [f"w{n}" for n in range(draw.choice((0, 0, 1, 2)))])

    def _calm_down(self) -> None:
        """End all faults, and make the final requests."""
        world = self.world
        world.faults, world.is_over = NO_FAULTS, True
        world.log_line("world", "the faults are over")
        wishes = last_wishes(world.random, world.clock(), sorted(world.ledger.batches.held))
        self.people[0].requests += wishes

    async def _rest(self) -> None:
        """Wait until no work is left; the checker reports what never ends."""
        deadline = self.world.clock() + SETTLE_TIME
        await asyncio.sleep(2.5 * QUEUE_SETTINGS.release_interval)  # a loss has been noticed by then
        if self.stranger.written:  # only a sweep reads its gaps
            await asyncio.sleep(GAP_POLICY.timeout.total_seconds())
        while not self._is_at_rest() and self.world.clock() < deadline:  # noqa: ASYNC110 - costs no time
            await asyncio.sleep(1.0)
        restless: list[Process] = [*self.workers, *self.coordinators, *self.people]
        for process in restless:
            process.retire()
        self.world.log_line("world", "at rest" if self._is_at_rest() else "no rest found")

    def _is_at_rest(self) -> bool:
        world = self.world
        batches = world.ledger.batches.held.values()
        over = all(batch.finished or batch.state == "paused" for batch in batches)
        cleared = not any(world.left_behind(batch.batch_id) for batch in batches if batch.finished)
        acknowledgement = all(known.published for known in world.ledger._publications.values())
        idle = all(executor.is_idle and executor.is_up_to_date for executor in self.executors)
        busy = world.belated or any(worker.unswept for worker in self.workers)
        done = all(people.are_done for people in self.people) and self.embedder.is_done
        return (
            over and cleared and acknowledgement and idle and done and world.redis.is_drained and not busy
        )

    async def _look_again(self) -> None:
        """Let a worker read everything once more: nothing may change."""
        before = memory_dump(self.world.tables)
        storage = Storage(
            _Silent(self.world.redis.log), self.world.tables, GAP_POLICY, clock=self.world.clock
        )
        await storage.store(sorted({*self.world.tables.evaluations, *self.world.redis.log._streams}))
        if memory_dump(self.world.tables) != before:
            self.world.violate(Harm.STUCK, "a last look at the streams found something to store")
