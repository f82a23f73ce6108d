"""The data plane: the real executor, its real event queue, and targets whose outcomes the seed decides."""

import asyncio
from datetime import datetime, timedelta

from domain.batch_spec import EvaluatorSpec
from eventlog import payloads as p
from eventlog.event_queue import EventQueue, QueueSettings
from eventlog.outbox import AttemptBuffer
from executor.batch_runtime import Factories
from executor.contract import Permanent, RateLimited, ScoringRequest, TargetReply, TargetRequest, Transient
from executor.executor import Executor, Ports
from executor.settings import ExecutorSettings, Timings
from tests.simulation.control_ports import distant_batch_registry, distant_executor_registry, distant_queue
from tests.simulation.payments import check_judging, check_payment
from tests.simulation.ports import DistantLog
from tests.simulation.process import Life, Process
from tests.simulation.world import World

QUEUE_SETTINGS = QueueSettings(release_interval=1.2)
TIMINGS = Timings(
    refresh=timedelta(seconds=0.6),
    idle_refresh=timedelta(seconds=0.6),  # each poll draws a fault: another value would change old seeds
    block=timedelta(seconds=0.6),
    poll=timedelta(seconds=0.2),
    heartbeat=timedelta(seconds=0.9),
    take_over_every=timedelta(seconds=2),
    stalled_after=timedelta(seconds=4),
    shutdown_grace=timedelta(seconds=3),
)


class Executing(Process):
    """An executor and its supervisor."""

    def __init__(self, world: World, name: str) -> None:
        self.skew = timedelta(0)
        self.queue: EventQueue | None = None
        self.executor: Executor | None = None
        super().__init__(world, name)

    async def main(self, life: Life) -> None:
        """Run an executor until it is killed or stopped."""
        self.executor = None
        self.queue = queue = EventQueue(
            DistantLog(life),
            source=life.name,
            settings=QUEUE_SETTINGS,
            now=self.now,
            clock=self.world.clock,
        )
        await queue.__aenter__()
        for task in queue._tasks:
            life.adopt(task)
        self.executor = executor = Executor(
            Ports(
                queue,
                distant_queue(life),
                distant_batch_registry(life),
                distant_executor_registry(life),
                now=self.now,
                jitter=self.world.random.random,
            ),
            ExecutorSettings(self.name, slots=2, drain=timedelta(seconds=1), timings=TIMINGS),
            Factories(lambda *_: Target(life), lambda spec, _: Evaluator(life, spec)),
            instance_id=life.name,
        )
        await executor.run()
        await queue.aclose()
        life.depart()

    def now(self) -> datetime:
        """Return the wall clock of this machine."""
        return self.world.now() + self.skew

    def stop(self) -> None:
        """Request a graceful shutdown."""
        if self.executor and not self.life.is_dead:
            self.executor.stop()

    @property
    def kept(self) -> list[AttemptBuffer]:
        """Return what it would re-append if Redis were lost."""
        return list(self.queue.outbox) if self.queue and not self.life.is_dead else []

    @property
    def is_idle(self) -> bool:
        """Whether it has no active task, and the queue has all its acknowledgements."""
        return self.executor is not None and self.executor.is_idle

    @property
    def is_up_to_date(self) -> bool:
        """Whether it is running, has noticed every loss of Redis, and all its events are acknowledged."""
        if self.queue is None or self.life.is_dead or self.life.frozen_until > self.world.clock():
            return False
        shards = {self.queue._shard(draft) for draft in self.kept}
        ack = all(self.queue._epochs.get(shard) == self.world.redis.epoch(shard) for shard in shards)
        return ack and all(draft.acknowledged for draft in self.kept)


class Target:
    """Answers, fails or hangs; and checks that no call is paid twice."""

    def __init__(self, life: Life) -> None:
        self.life, self.world = life, life.world

    async def call(self, question: TargetRequest) -> TargetReply:
        """Answer, fail or hang, as the seed decides."""
        world, random, key = self.world, self.world.random, question.evaluation_id
        check_payment(self.life, key)
        await asyncio.sleep(random.choice((0.0, 0.0, 0.01, 0.3, 1.2, 1.8)))
        match "answer" if world.is_over else random.choice(KINDS):
            case "rate limited":
                raise RateLimited(retry_after=timedelta(seconds=random.choice((0.0, 0.5, 1.5))))
            case "transient":
                raise Transient("unavailable", "the model looked away")
            case "permanent":
                raise Permanent("refused", "no such model")
            case "broken":
                raise ZeroDivisionError
            case "hang":
                world.seen["target hung"] += 1
                await asyncio.get_running_loop().create_future()
        usage = p.TokenUsage(input_tokens=random.randint(1, 9), output_tokens=1)
        return TargetReply(
            p.Answer(output=random.choice("45"), usage=usage, cost_usd=random.choice((0.1, 0.25, 1e-7)))
        )

    async def aclose(self) -> None:
        """Close nothing."""


KINDS = (*["answer"] * 9, "rate limited", "transient", "permanent", "broken", "hang")


class Evaluator:
    """Scores, sometimes at a cost, or fails."""

    def __init__(self, life: Life, spec: EvaluatorSpec) -> None:
        self.life, self.world, self.spec = life, life.world, spec

    async def score(self, judged: ScoringRequest) -> p.Score:
        """Score or fail, as the seed decides."""
        world, random = self.world, self.world.random
        check_judging(self.life, judged.case.id, self.spec.name, judged.output)
        await asyncio.sleep(random.choice((0.0, 0.0, 0.01, 0.4)))
        match "judge" if world.is_over else random.choice(VERDICTS):
            case "rate limited":
                raise RateLimited(retry_after=timedelta(seconds=0.5))
            case "transient":
                raise Transient("unavailable", "the judge looked away")
            case "permanent":
                raise Permanent("refused", "no such judge")
            case "hang":
                await asyncio.get_running_loop().create_future()
        cost = random.choice((0.0, 0.3))
        return p.Score(self.spec.name, 0.5, passed=judged.output == "4", cost_usd=cost)

    async def aclose(self) -> None:
        """Close nothing."""


VERDICTS = (*["judge"] * 9, "rate limited", "transient", "permanent", "hang")
