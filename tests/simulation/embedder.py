"""A writer that opens its attempts itself, without a coordinator, as an embedder would."""

import asyncio
from collections.abc import Iterator

from eventlog import payloads as p
from eventlog.event_queue import EventQueue, QueueSettings
from eventlog.lifecycle import Fact
from eventlog.outbox import AttemptBuffer
from tests.builders import CASE
from tests.simulation.ports import DistantLog
from tests.simulation.process import Life, Process
from tests.simulation.world import EMBEDDED, Harm, World

SETTINGS = QueueSettings(release_interval=1.2)
ANSWER = p.Responded(output="4", usage=p.TokenUsage(input_tokens=7, output_tokens=1), cost_usd=0.1)
SCORE = p.Scored(evaluator="judge", score=0.5, usage=p.TokenUsage(input_tokens=2), cost_usd=0.3)
CLOSINGS = (
    p.Completed(verdict="passed", score=1.0, usage=p.TokenUsage(input_tokens=9), cost_usd=3.3, exit_code=0),
    p.Completed(verdict="failed", score=0.1, output="5"),
    p.Failed(error=p.ErrorDetail(kind="permanent", message="no such model")),
    p.TimedOut(limit="task", seconds=60.0),
)


class Embedder(Process):
    """Writes some histories; the one that it was writing when it crashed has no end."""

    def __init__(self, world: World, own_work: list[str]) -> None:
        self.own_work = own_work
        self.given_up: set[str] = set()
        self.queue: EventQueue | None = None
        self.at_work = ""
        super().__init__(world, "embedder")

    async def main(self, life: Life) -> None:
        """Write one history after the other."""
        self.given_up.add(self.at_work)
        self.queue = EventQueue(
            DistantLog(life),
            source=life.name,
            settings=SETTINGS,
            now=self.world.now,
            clock=self.world.clock,
        )
        await self.queue.__aenter__()
        for task in self.queue._tasks:
            life.adopt(task)
        while self.own_work:
            await asyncio.sleep(self.world.random.uniform(0.2, 2.0))
            self.at_work = self.own_work.pop()
            await self._live(life, self.queue)
        self.at_work = ""

    async def _live(self, life: Life, queue: EventQueue) -> None:
        self.world.seen["opened without a coordinator"] += 1
        owned = queue.own(self.at_work, EMBEDDED)
        owned.open(p.Queued(case=CASE))
        for fact in self._facts(life.name):
            await asyncio.sleep(self.world.random.choice((0.0, 0.001, 0.1, 0.6)))
            owned.record(fact)
        await owned.acknowledged()
        if owned.depth:
            self.world.violate(
                Harm.VIOLATION, f"{life.name} received an acknowledgement of all, but not all is on record"
            )

    def _facts(self, name: str) -> Iterator[Fact]:
        random = self.world.random
        yield p.Provisioning(executor=name, nonce="own")
        yield p.Running(target="simulated")
        if random.random() < 0.7:
            yield ANSWER
            for _ in range(random.randint(0, 2)):
                yield SCORE
        yield random.choice(CLOSINGS)

    @property
    def is_done(self) -> bool:
        """Whether all its events are acknowledged."""
        return (
            not self.own_work
            and not self.at_work
            and not self.life.is_dead
            and all(d.acknowledged for d in self.kept)
        )

    @property
    def kept(self) -> list[AttemptBuffer]:
        """Return what it would re-append if Redis were lost."""
        return list(self.queue.outbox) if self.queue and not self.life.is_dead else []
