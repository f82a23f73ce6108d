"""The two sides of the state machine: the real components in virtual time, and the naive model."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

from hypothesis.stateful import RuleBasedStateMachine

from eventlog import payloads as p
from eventlog.codec import Entry, QuarantineReason, encode
from eventlog.event_queue import AttemptLost, Claimed, EventQueue, OwnedAttempt, QueueSettings
from eventlog.events import Event
from eventlog.lifecycle import TRANSITIONS
from eventlog.log import Append, AppendResult
from projections.folds.progress import Progress
from storage_worker.gaps import GapPolicy
from tests.builders import BATCH, event, payload, records
from tests.simulation.naive_model import NaiveModel
from tests.simulation.virtual_loop import VirtualLoop, end_all
from tests.storage_world import World

T = TypeVar("T")
TIMEOUT = timedelta(seconds=1)
GAP_POLICY = GapPolicy(TIMEOUT, TIMEOUT)
SETTINGS = QueueSettings(linger=0.0, release_interval=1e9)
WORKERS = 2


@dataclass(eq=False)
class Owner:
    """A live executor's attempt, and all it has written there."""

    key: str
    attempt: int
    queue: int
    owned: OwnedAttempt
    written: list[Event]


class MachineBase(RuleBasedStateMachine):
    """Real queues, log, tables and workers on one side, a dict of lists on the other."""

    def start(self) -> None:
        """Start with empty stores."""
        self.loop = VirtualLoop()
        self.world = World()
        self.model = NaiveModel()
        self.workers = [self.world.storage(gap_policy=GAP_POLICY) for _ in range(WORKERS)]
        self.queues: dict[int, EventQueue] = {}
        self.owners: list[Owner] = []
        self.strangers: dict[str, list[Event]] = {}
        self.claims = self.instances = 0
        for number in range(2):
            self.start_queue(number)

    def start_queue(self, number: int) -> None:
        """Start an executor, under a new name."""
        self.instances += 1
        queue = EventQueue(
            self.world.log, source=f"executor-{self.instances}", settings=SETTINGS, clock=self.loop.time
        )
        self.run(queue.__aenter__())
        self.queues[number] = queue

    def run(self, doing: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine, and let all tasks finish that follow from it."""

        async def and_settle() -> T:
            done = await doing
            await asyncio.sleep(0.05)
            return done

        return self.loop.run_until_complete(and_settle())

    def arrive(self, key: str, each: Event) -> None:
        """Add an event to the model, arrived now."""
        self.model.redis[key].append(Entry(b"%d-0" % self.world.now_ms, each, encode(each)))

    def pick(self, among: list[T], number: int) -> T:
        """Choose one of a list."""
        return among[number % len(among)]

    def open_next(self, key: str, word: str) -> None:
        """Open the next attempt in the log."""
        attempt = max(self.model.newest(key), self.model.postgres[key].attempt) + 1
        opening = event(word, evaluation_id=key, attempt=attempt)
        epoch = self.run(self.world.log.epoch(key))
        [reply] = self.run(self.world.log.append([Append(key, records([opening]), epoch)]))
        assert reply.results[0].acknowledged
        self.arrive(key, opening)

    def ask(self, queue: EventQueue, key: str, attempt: int, wanted: p.Provisioning) -> Claimed:
        """Claim; a writer with an old epoch gets the new one, and may claim again."""
        try:
            return self.run(queue.claim(key, BATCH, attempt=attempt, claim=wanted))
        except AttemptLost as lost:
            if lost.answer is not AppendResult.EPOCH:
                raise
        return self.run(queue.claim(key, BATCH, attempt=attempt, claim=wanted))

    def emit_one(self, owner: Owner, step: int) -> None:
        """Record one of the facts that may follow."""
        words = sorted(TRANSITIONS[owner.owned._position.phase])
        if not words:
            return
        owner.owned.record(payload(self.pick(words, step)))  # type: ignore[arg-type]  # all of them are facts
        recorded = owner.owned._buffer.unsent[-1].event
        passes = self.model.newest(owner.key) == owner.attempt
        try:
            self.run(owner.owned.acknowledged())
        except AttemptLost:
            assert not passes
            self.owners.remove(owner)
            return
        assert passes
        owner.written.append(recorded)
        self.arrive(owner.key, recorded)

    def put_back(self, owner: Owner) -> None:
        """Add an attempt to the model again, unless a higher one was first."""
        if self.model.newest(owner.key) > owner.attempt:
            self.owners.remove(owner)
            return
        for recorded in owner.written:
            self.arrive(owner.key, recorded)

    def look(self, keys: list[str]) -> None:
        """Apply the same to the model."""
        ripe_ms = self.world.now_ms - int(TIMEOUT.total_seconds() * 1000)
        for key in keys:
            self.model.postgres[key].look(self.model.redis[key], ripe_ms=ripe_ms)

    def ours(self) -> list[str]:
        """List the evaluations that have a coordinator."""
        return [key for key in self.model.redis if key.startswith("e")]

    def quarantined(self, key: str) -> set[bytes]:
        """Return what contradicts an evaluation's events."""
        kept = self.world.tables.quarantined.values()
        return {
            bad.body for bad in kept if bad.evaluation_id == key and bad.reason == QuarantineReason.CONFLICT
        }

    def counted(self) -> Progress:
        """Add up the counters of all shards."""
        total = Progress()
        for progress in self.world.tables.progress.values():
            total += progress
        return total

    def teardown(self) -> None:
        """Close everything."""
        if hasattr(self, "loop"):
            end_all(self.loop)
            self.loop.close()
