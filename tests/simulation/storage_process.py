"""A storage worker: the real `Storage`, with wake-ups that it acknowledges after the commit."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta

from eventlog.codec import Entry, RawEntry, read_entry
from eventlog.log import LogUnavailable
from eventlog.timeline import Cursor, replay
from projections.database.errors import DatabaseUnavailable
from storage_worker.consumer import WakeUp, parse_wake_ups
from storage_worker.gaps import BreakerLimits, GapBreaker, GapPolicy
from storage_worker.storage import Storage
from tests.simulation.ports import DistantLog, DistantTables
from tests.simulation.process import Life, Process
from tests.simulation.world import Harm

GAP_POLICY = GapPolicy(timeout=timedelta(seconds=4), warning=timedelta(seconds=1))
SWEEP = 2.0
IDLE = 3.0
"""How long a wake-up may be pending before another worker takes it over."""
LIMITS = BreakerLimits(rate=0.4, minimum=6, window=8.0, cooldown=4.0)


class StorageWorker(Process):
    """Reads, stores, acknowledges, sweeps, and takes over from dead workers."""

    storage: Storage | None = None

    @property
    def unswept(self) -> list[str]:
        """The evaluations of the current sweep."""
        return self.storage._interrupted if self.storage else []

    def died(self) -> None:
        """Record what no process will release: the one leftover of a crash."""
        self.world.knowledge.unswept.update(self.unswept)
        super().died()

    async def main(self, life: Life) -> None:
        """Process what was pending at the last crash, then new wake-ups."""
        storage = self.storage = Storage(
            DistantLog(life),
            DistantTables(life),
            GAP_POLICY,
            breaker=GapBreaker(LIMITS),
            clock=self.world.clock,
        )
        await self.finish(life, storage, self.world.redis.left_by(self.name))
        life.spawn(self._sweep_forever(life, storage))
        life.spawn(self._take_over_forever(life, storage))
        pause = 0.05
        while True:
            await asyncio.sleep(self.world.random.uniform(0, pause))
            taken = self.world.redis.take_wake_ups(self.name, count=self.world.random.choice((1, 3, 50)))
            pause = 0.1 if taken else min(1.0, pause * 2)
            await self.finish(life, storage, taken)

    async def finish(self, life: Life, storage: Storage, taken: Mapping[int, str]) -> None:
        """Store the evaluations of wake-ups, and only then acknowledge them."""
        if taken:
            redis = self.world.redis
            seen, losses = {key: list(redis.stream(key).entries) for key in taken.values()}, redis.losses
            await storage.process(*parse_wake_ups(wake_ups(taken)))
            if losses == redis.losses:
                self._check_stored(seen)
            await self.acknowledge(life, taken)

    def _check_stored(self, seen: Mapping[str, Sequence[RawEntry]]) -> None:
        """Check that a wake-up is acknowledged only after its evaluations are stored, or have to wait."""
        tables = self.world.tables
        for key, raw in seen.items():
            read = (read_entry(key, entry) for entry in raw)
            left = [e for e in read if isinstance(e, Entry) and (key, *e.key) not in tables.events]
            held = tables.evaluations.get(key)
            walked = replay(held.row.cursor if held else Cursor(), left)
            due = [step.entry.key for step in walked.steps if self.world.is_ours(step.entry.event.batch_id)]
            if due:
                self.world.violate(Harm.VIOLATION, f"{self.name} acknowledges {key}, but {due} is left")

    async def acknowledge(self, life: Life, taken: Iterable[int]) -> None:
        """Acknowledge, with retries."""

        async def happen() -> None:
            self.world.redis.acknowledge(taken)

        while True:
            try:
                return await life.call("acknowledge", happen, LogUnavailable)
            except LogUnavailable:
                await asyncio.sleep(0.2)

    async def _sweep_forever(self, life: Life, storage: Storage) -> None:
        while True:
            await asyncio.sleep(self.world.random.uniform(0.8, 1.2) * SWEEP)
            try:
                await storage.sweep(unchanged_for=SWEEP, page=self.world.random.choice((1, 100)))
            except (LogUnavailable, DatabaseUnavailable) as error:
                self.world.log_line(life.name, f"the sweep was interrupted: {error}")
            if storage.is_degraded:
                self.world.seen["in a hurry"] += 1

    async def _take_over_forever(self, life: Life, storage: Storage) -> None:
        while True:
            await asyncio.sleep(IDLE / 2)
            if taken := self.world.redis.claim_stalled(self.name, idle=IDLE):
                self.world.seen["takeover"] += 1
                self.world.log_line(life.name, f"takes over {' '.join(taken.values())}")
                await self.finish(life, storage, taken)


def wake_ups(taken: Mapping[int, str]) -> list[WakeUp]:
    """Encode wake-ups as they are delivered."""
    return [(b"%d-0" % number, {b"id": key.encode()}) for number, key in taken.items()]
