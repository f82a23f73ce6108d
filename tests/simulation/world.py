"""What the actors of one run share: the clock, the random numbers, the log, the tables and the trace."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from random import Random
from typing import Any, NamedTuple

from eventlog.events import EventKey
from eventlog.log import LogUnavailable
from eventlog.memory import MemoryEventLog
from projections.database.errors import DatabaseUnavailable, UnstorableData
from projections.ledger.contract import BatchExists
from projections.ledger.memory import MemoryLedger
from projections.store.memory import MemoryStore
from taskqueue.tasks import QueueUnavailable
from tests.builders import FIRST_ARRIVAL_MS
from tests.simulation.profiles import Faults, Profile, draw_faults
from tests.simulation.server import Memory, SimulatedRedis
from tests.simulation.virtual_loop import VirtualLoop

START = datetime.fromtimestamp(FIRST_ARRIVAL_MS / 1000, UTC)
EMBEDDED = "embedded"
"""The batch of evaluations that are opened without a coordinator."""
NO_FAULTS = Faults()
NOT_REPORTED = (UnstorableData, BatchExists, LogUnavailable, DatabaseUnavailable, QueueUnavailable)
"""What may happen to a call whose caller has timed out."""


class Fate(StrEnum):
    """The outcome of one call of a port."""

    FINE = "fine"
    UNREACHED = "unreached"
    REPLY_LOST = "reply lost"
    BELATED = "belated"
    KILLED_BEFORE = "killed before"
    KILLED_AFTER = "killed after"


class Harm(StrEnum):
    """The heading of the proof under which a failure is counted."""

    LOST = "lost"
    DOUBLED = "doubled"
    STUCK = "stuck"
    VIOLATION = "violation"


class Violation(NamedTuple):
    """A broken invariant."""

    harm: Harm
    what: str


class Acknowledgement(NamedTuple):
    """An event that was acknowledged to its writer."""

    writer: str
    evaluation_id: str
    key: EventKey
    body: bytes
    losses: int
    """How often Redis had been lost by then."""
    at: float


@dataclass(slots=True)
class Knowledge:
    """What was acknowledged to the actors: the checker compares it with the tables."""

    acknowledged: list[Acknowledgement] = field(default_factory=list)
    refused: dict[tuple[str, str, int], float] = field(default_factory=dict)
    """Writers whose attempt was fenced, and when."""
    bodies: dict[tuple[str, EventKey], set[bytes]] = field(default_factory=dict)
    """All that honest writers have ever sent under a key."""
    dead: set[str] = field(default_factory=lambda: {"no process"})
    replaced: dict[str, int] = field(default_factory=dict)
    """The attempt that Postgres had of each evaluation when Redis was last lost."""
    unswept: set[str] = field(default_factory=set)
    """Evaluations that a worker was sweeping over when it died."""
    unwoken: set[str] = field(default_factory=set)
    """Evaluations of which wake-ups were lost."""
    asked: dict[str, set[int]] = field(default_factory=dict)
    """Of each evaluation, the attempts that have called a target."""
    opened: dict[tuple[str, int], float] = field(default_factory=dict)
    """When attempts were opened, but for the first."""
    finished: dict[str, float] = field(default_factory=dict)
    """When batches were last over."""
    strays: dict[str, set[str]] = field(default_factory=dict)
    """The actors that have enqueued tasks of batches that were over."""
    foreign_keys: set[tuple[str, EventKey]] = field(default_factory=set)
    """Keys that a foreign writer wrote."""


class World:
    """The state of one run; every choice in it comes from the seed."""

    def __init__(
        self,
        seed: int,
        profile: Profile,
        *,
        log: type[MemoryEventLog] = MemoryEventLog,
        tables: type[MemoryStore] = MemoryStore,
    ) -> None:
        self.random = Random(f"{profile} {seed}")
        self.faults = draw_faults(self.random, profile)
        self.loop = VirtualLoop()
        self.clock = self.loop.time
        self.redis = SimulatedRedis(log(self.now_ms), self.clock)
        self.tables = tables(self.clock)
        self.ledger = MemoryLedger(self.tables, shards=self.redis.log.shards, now=self.now)
        self.knowledge = Knowledge()
        self.seen: Counter[str] = Counter()
        self.trace: list[tuple[float, str, str]] = []
        self.violations: list[Violation] = []
        self.belated = 0
        self.is_belated = False
        self.is_over = False
        self.going_round: set[str] = set()

    def now_ms(self) -> int:
        """Return the time of Redis."""
        return FIRST_ARRIVAL_MS + int(self.clock() * 1000)

    def now(self) -> datetime:
        """Return the wall clock."""
        return START + timedelta(seconds=self.clock())

    def is_ours(self, batch_id: str) -> bool:
        """Whether only writers that keep the rules write to a batch's evaluations."""
        return batch_id == EMBEDDED or batch_id in self.ledger.batches.held

    def left_behind(self, batch_id: str) -> str:
        """Return what is left of a batch that is over, and which component left it.

        No component is responsible if Redis lost the removal, or if a process that enqueued too late died
        before it could know.
        """
        over_at = self.knowledge.finished.get(batch_id, 0.0)
        if self.redis.lost_at > over_at or self.knowledge.strays.get(batch_id, set()) & self.knowledge.dead:
            return ""
        return self.redis.holds(batch_id)

    def chance(self, likelihood: float) -> bool:
        """Draw a random decision, unless nothing depends on it."""
        return likelihood > 0 and self.random.random() < likelihood

    def log_line(self, actor: str, what: str) -> None:
        """Add a line to the trace."""
        self.trace.append((self.clock(), actor, what))

    def violate(self, harm: Harm, what: str) -> None:
        """Record a broken invariant."""
        self.violations.append(Violation(harm, what))
        self.log_line("checker", f"{harm}: {what}")

    def lose_redis(self, kept: Memory | None = None) -> None:
        """Let Redis lose everything, or all writes after the last snapshot."""
        held = self.tables.evaluations
        self.knowledge.replaced = {key: each.row.cursor.attempt for key, each in held.items()}
        self.redis.lose(kept)

    def draw_fate(self) -> Fate:
        """Draw the outcome of the next call."""
        faults, roll = self.faults, self.random.random()
        if faults is NO_FAULTS:
            return Fate.FINE
        for fate, likelihood in (
            (Fate.UNREACHED, faults.unreached),
            (Fate.REPLY_LOST, faults.reply_lost),
            (Fate.BELATED, faults.belated),
            (Fate.KILLED_BEFORE, faults.killed / 2),
            (Fate.KILLED_AFTER, faults.killed / 2),
        ):
            if roll < likelihood:
                return fate
            roll -= likelihood
        return Fate.FINE

    def draw_delay(self) -> float:
        """Draw the delay of a message: mostly none, so that a run stays short."""
        if self.chance(self.faults.slow):
            return self.random.uniform(0.5, 4.0)
        return self.random.choice((0.0, 0.0, 0.0, 0.001, 0.003, 0.01, 0.05))

    def happen_later(self, call: Callable[[], Awaitable[Any]]) -> None:
        """Let a call take effect whose caller has timed out."""
        self.belated += 1
        asyncio.get_running_loop().call_later(
            self.random.uniform(0.0, 3.0), lambda: asyncio.ensure_future(self._belatedly(call))
        )

    async def _belatedly(self, call: Callable[[], Awaitable[Any]]) -> None:
        self.belated -= 1
        self.is_belated = True
        with suppress(*NOT_REPORTED):
            await call()
        self.is_belated = False
