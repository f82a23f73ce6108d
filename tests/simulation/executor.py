"""An executor: claims what is queued, plays a script, and says what happened through a real event queue."""

import asyncio
from collections.abc import Iterator
from datetime import datetime, timedelta

from eventlog import payloads as p
from eventlog.commands import Fact
from eventlog.event_queue import AttemptLost, EventQueue, OwnedAttempt, QueueSettings
from eventlog.outbox import Draft
from tests.builders import CASE, FAULT
from tests.simulation.ports import DistantLog
from tests.simulation.process import Life, Process
from tests.simulation.server import Task
from tests.simulation.world import BATCH, Harm, World

SLOTS = 2
BEAT = 1.0
PATIENT_ATTEMPTS = 5
"""Attempts after which a script no longer asks for another."""
SETTINGS = QueueSettings(release_interval=1.2)
RESPONSES = [
    p.Responded(output="4", usage=p.Usage(input_tokens=n, output_tokens=1), cost_usd=cost, cached=cached)
    for n, cost, cached in ((7, 0.1, False), (3, 0.25, False), (5, 1e-7, True))
]
SCORES = [p.Scored(evaluator="judge", score=0.5, usage=p.Usage(input_tokens=2), cost_usd=0.3)]
COMPLETIONS = [
    p.Completed(verdict="passed", score=1.0, usage=p.Usage(input_tokens=9), cost_usd=3.3, exit_code=0),
    p.Completed(verdict="failed", score=0.1, output="5"),
]
FAILED = p.Failed(error=p.Fault(kind="permanent", message="no such model"))
TIMED_OUT = p.TimedOut(limit="task", seconds=60.0)


class Executor(Process):
    """A data-plane worker; what it opens itself it opens without a coordinator, as an embedder would."""

    def __init__(self, world: World, name: str, *, own_work: list[str]) -> None:
        self.own_work = own_work
        self.skew = timedelta(0)
        self.queue: EventQueue | None = None
        super().__init__(world, name)

    async def main(self, life: Life) -> None:
        """Start a queue and the slots that feed it."""
        self.queue = EventQueue(
            DistantLog(life), source=life.name, settings=SETTINGS, now=self.now, clock=self.world.clock
        )
        await self.queue.__aenter__()
        for task in self.queue._tasks:
            life.adopt(task)
        life.spawn(self._beat(life))
        for number in range(SLOTS):
            life.spawn(self._work(life, self.queue, number))

    def now(self) -> datetime:
        """Return the time of day as this machine has it."""
        return self.world.now() + self.skew

    @property
    def kept(self) -> list[Draft]:
        """What it would put back if Redis were lost."""
        return list(self.queue.outbox) if self.queue and not self.life.is_dead else []

    @property
    def is_up_to_date(self) -> bool:
        """Whether it is awake, knows of every loss of Redis, and all it has to say is on record."""
        if self.queue is None or self.life.is_dead or self.life.frozen_until > self.world.clock():
            return False
        shards = {self.queue._shard(draft) for draft in self.kept}
        told = all(self.queue._epochs.get(shard) == self.world.redis.epoch(shard) for shard in shards)
        return told and all(draft.on_record for draft in self.kept)

    async def _beat(self, life: Life) -> None:
        while True:
            if life.frozen_until <= self.world.clock():
                self.world.redis.beats[life.name] = self.world.clock()
            await asyncio.sleep(BEAT)

    async def _work(self, life: Life, queue: EventQueue, slot: int) -> None:
        random, deliveries = self.world.random, 0
        while True:
            await asyncio.sleep(random.uniform(0.2, 0.9))
            try:
                if self.own_work and self.world.chance(0.3):
                    await self._live(life, self._open(queue, life, self.own_work.pop()), 1)
                elif task := self._take(life):
                    deliveries += 1
                    await self._attempt(life, queue, task, f"{slot}-{deliveries}")
            except AttemptLost as lost:
                self.world.tell(life.name, str(lost))
                self.world.seen["attempt lost"] += 1

    def _take(self, life: Life) -> Task | None:
        redis = self.world.redis
        if not redis.tasks or life.frozen_until > self.world.clock():
            return None
        task = redis.tasks.popleft()
        if self.world.chance(self.world.faults.doubled_tasks):
            redis.tasks.append(task)
            self.world.seen["task doubled"] += 1
        redis.tasks_in_hand[task] = life.name
        return task

    async def _attempt(self, life: Life, queue: EventQueue, task: Task, delivery: str) -> None:
        try:
            claim = p.Provisioning(executor=life.name, nonce=delivery)
            claimed = await queue.claim(task.evaluation_id, BATCH, attempt=task.attempt, claim=claim)
            await self._live(life, claimed.attempt, task.attempt)
        finally:
            if self.world.redis.tasks_in_hand.get(task) == life.name:
                del self.world.redis.tasks_in_hand[task]

    def _open(self, queue: EventQueue, life: Life, evaluation_id: str) -> OwnedAttempt:
        self.world.seen["opened without a coordinator"] += 1
        owned = queue.own(evaluation_id, BATCH)
        owned.open(p.Queued(case=CASE))
        owned.record(p.Provisioning(executor=life.name, nonce="own"))
        return owned

    async def _live(self, life: Life, owned: OwnedAttempt, attempt: int) -> None:
        for fact in self._script(attempt):
            await asyncio.sleep(self.world.random.choice((0.0, 0.001, 0.1, 0.6)))
            if not life.is_dead:
                owned.record(fact)
        await owned.on_record()
        self._check_promise(life, owned)

    def _check_promise(self, life: Life, owned: OwnedAttempt) -> None:
        if owned.depth:
            self.world.violate(Harm.VIOLATION, f"{life.name} was told that all is on record, but it is not")

    def _script(self, attempt: int) -> Iterator[Fact]:
        """Decide how this attempt goes."""
        random = self.world.random
        steps = random.choice((0, 1, 2, 2, 2))
        if steps > 0:
            yield p.Running(target="simulated")
        if steps > 1:
            yield random.choice(RESPONSES)
            for _ in range(random.randint(0, 2)):
                yield random.choice(SCORES)
        yield self._closing(steps, attempt)

    def _closing(self, steps: int, attempt: int) -> Fact:
        random = self.world.random
        if steps and random.random() < (0.6 if attempt < PATIENT_ATTEMPTS else 1.0):
            return random.choice(COMPLETIONS)
        if attempt < PATIENT_ATTEMPTS and random.random() < 0.5:
            retry_at = self.world.now() + timedelta(seconds=random.choice((0, 1, 3)))
            return p.Retrying(error=FAULT, retry_at=retry_at)
        return random.choice((FAILED, TIMED_OUT))
