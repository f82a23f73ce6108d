"""One run: a small batch, its writers, and what must be true of it in the end."""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from datetime import datetime
from random import Random
from typing import Any

from psycopg import OperationalError

from eventlog.clock import utc_now
from eventlog.event_queue import EventQueue
from eventlog.log import EncodedEvent, LogWriter
from tests.chaos.checker import Expected
from tests.chaos.lives import Plan, live, plan
from tests.chaos.witness import Witness, WitnessedLog
from tests.chaos.world import World
from tests.waiting import until

WRITERS = 3
AT_ONCE = 2
"""Evaluations of one writer at a time: so few that a run lasts long enough to be disturbed."""
TIMEOUT = 45.0
"""Seconds after which what has not ended counts as stuck."""
ENDED = "SELECT count(*) FROM evaluations WHERE batch_id = %s AND ended_at IS NOT NULL"
EVENTS_EACH = 6

WriterLog = Callable[["Run", list[WitnessedLog]], LogWriter]
"""What stands between a writer and the log, given the writer's connections."""


@dataclass(frozen=True, slots=True)
class Setup:
    """What a run needs before its fault."""

    evaluations: int = 60
    workers: int = 1
    gap_timeout: float = 2.0
    log: WriterLog = lambda _run, logs: logs[0]
    clock: Callable[[Random], Callable[[], datetime]] = lambda _rng: utc_now
    verdicts: frozenset[str] = frozenset({"applied"})


@dataclass(slots=True)
class Run:
    """A run in progress."""

    world: World
    batch_id: str
    rng: Random
    setup: Setup
    expected: Expected
    postgres_url: str = ""
    witness: Witness = field(default_factory=Witness)
    made_away_with: list[EncodedEvent] = field(default_factory=list)
    """Events that were dropped on their way, to turn up later or never."""
    complaints: list[str] = field(default_factory=list)
    """What the fault itself found wrong."""
    notes: Counter[str] = field(default_factory=Counter)
    """Seldom paths that the fault itself has seen taken."""
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)
    """What is to be undone once the run has been checked."""
    all_written: asyncio.Event = field(default_factory=asyncio.Event)
    _plans: list[Plan] = field(default_factory=list)
    _notes_before: Counter[str] = field(default_factory=Counter)

    @classmethod
    def begin(cls, world: World, batch_id: str, rng: Random, setup: Setup) -> "Run":
        """Plan a batch."""
        plans = [plan(batch_id, number, rng) for number in range(setup.evaluations)]
        tokens = sum(len(one.question) + 5 for one in plans if one.fate != "broken")
        expected = Expected(
            batch_id,
            {one.evaluation_id for one in plans},
            tokens=(tokens, tokens),
            verdicts=setup.verdicts,
        )
        run = cls(world, batch_id, rng, setup, expected, world.servers.postgres_url)
        run._plans, run._notes_before = plans, world.workers.call_log.counts()
        return run

    def noted(self) -> Counter[str]:
        """What the workers have written down since the run began."""
        return self.world.workers.call_log.counts() - self._notes_before

    async def moment(self, earliest: float = 0.05, latest: float = 0.6) -> None:
        """Wait for a moment, drawn by lot, at which so much of the batch is on record."""
        share = earliest + self.rng.random() * (latest - earliest)
        await self.progress(share)

    async def progress(self, share: float) -> None:
        """Wait until this share of the batch is on record."""
        wanted = share * len(self._plans) * EVENTS_EACH
        await until(lambda: self.all_written.is_set() or len(self.witness.acknowledged) >= wanted, TIMEOUT)

    async def pause(self, shortest: float, longest: float) -> None:
        """Let a time pass, drawn by lot: an outage takes as long as it takes."""
        await asyncio.sleep(shortest + self.rng.random() * (longest - shortest))

    async def write(self) -> None:
        """Live through all evaluations, and keep the writers alive until Postgres has every one."""
        async with AsyncExitStack() as stack:
            queues = [await self._open_queue(stack, number) for number in range(WRITERS)]
            turns = [asyncio.Semaphore(AT_ONCE) for _ in queues]
            lives = [
                self._live(one, queues[number % WRITERS], turns[number % WRITERS])
                for number, one in enumerate(self._plans)
            ]
            await asyncio.gather(*lives)
            drafts = [(queue, draft) for queue in queues for draft in queue.outbox]
            await asyncio.gather(*(queue.until_acknowledged(draft) for queue, draft in drafts))
            self.all_written.set()
            await self.until_ended()

    async def _open_queue(self, stack: AsyncExitStack, number: int) -> EventQueue:
        logs = [WitnessedLog.seen_by(self.witness, self.world.writers_redis) for _ in range(3)]
        for log in logs:
            stack.push_async_callback(log.aclose)
        writer = self.setup.log(self, logs)
        queue = EventQueue(writer, source=f"writer-{number}", now=self.setup.clock(self.rng))
        return await stack.enter_async_context(queue)

    async def _live(self, one: Plan, queue: EventQueue, turn: asyncio.Semaphore) -> None:
        async with turn:
            await live(one, self.batch_id, queue, lambda _depth: None)

    async def until_ended(self) -> None:
        """Wait until every evaluation has ended, or until the time-out."""
        loop = asyncio.get_running_loop()
        give_up = loop.time() + TIMEOUT
        while not await self._all_ended(give_up) and loop.time() < give_up:  # noqa: ASYNC110 - there is no event to wait for
            await asyncio.sleep(0.05)

    async def _all_ended(self, give_up: float) -> bool:
        """Ask over one connection, for as long as it holds."""
        loop = asyncio.get_running_loop()
        try:
            async with self.world.postgres(self.postgres_url) as conn:
                while loop.time() < give_up:
                    if await _count(conn, self.batch_id) >= len(self.expected.evaluations):
                        return True
                    await asyncio.sleep(0.02)
        except OperationalError:
            pass
        return False


async def _count(conn: Any, batch_id: str) -> int:
    return int((await (await conn.execute(ENDED, [batch_id])).fetchone())[0])
