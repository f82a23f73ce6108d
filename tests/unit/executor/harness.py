"""A harness for executors: queue, batch registry and log in memory, scripted targets, virtual time."""

import asyncio
import functools
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec, pack
from eventlog import payloads as p
from eventlog.codec import decode_body
from eventlog.event_queue import EventQueue
from eventlog.events import Event
from eventlog.log import Append
from eventlog.memory import MemoryEventLog
from executor.admission import Admission
from executor.batch_runtime import Factories
from executor.contract import (
    Evaluator,
    ExecutionEnvironment,
    ScoringRequest,
    Target,
    TargetReply,
    TargetRequest,
)
from executor.executor import Executor, Ports
from executor.lanes.assignment import BatchContext
from executor.lanes.contract import Lanes
from executor.lanes.permits import LaneUse
from executor.settings import ExecutorSettings
from taskqueue.batch_registry import BatchEntry, BatchState
from taskqueue.budget.contract import BudgetAccounts
from taskqueue.memory import MemoryBatchRegistry, MemoryExecutorRegistry, MemoryTaskQueue
from taskqueue.queue_layout import QueueLayout
from taskqueue.tasks import Task
from tests.builders import BATCH, CASE, event, records
from tests.simulation.virtual_loop import VirtualLoop, run_virtually

BEGINNING = 1_700_000_000.0
TARGET = TargetSpec("fake", "fake")
ANSWER = p.Answer(
    output="4", usage=p.TokenUsage(input_tokens=7, output_tokens=1), cost_usd=0.5, latency_ms=3.0
)
SETTINGS = ExecutorSettings("worker", slots=4, drain=timedelta(seconds=20))

Ask = Callable[[TargetRequest], Awaitable[TargetReply]]
Judge = Callable[[ScoringRequest], Awaitable[p.Score]]


def virtually(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run a test in virtual time: an hour passes at once."""

    @functools.wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        run_virtually(test(*args, **kwargs), VirtualLoop())

    return run


async def answer_at_once(_request: TargetRequest) -> TargetReply:
    return TargetReply(ANSWER)


async def agree(judged: ScoringRequest) -> p.Score:
    return p.Score(evaluator="unnamed", score=1.0, passed=judged.output == judged.case.expected)


async def hang(_anything: object) -> Any:
    await asyncio.get_running_loop().create_future()


def raising(error: BaseException) -> Callable[[object], Awaitable[Any]]:
    async def fail(_anything: object) -> Any:
        raise error

    return fail


@dataclass
class FakeTarget:
    """Answers as scripted; remembers its requests."""

    how: Ask = answer_at_once
    asked: list[TargetRequest] = field(default_factory=list)
    cancelled: int = 0
    closed: int = 0

    async def call(self, question: TargetRequest) -> TargetReply:
        self.asked.append(question)
        try:
            return await self.how(question)
        except asyncio.CancelledError:
            self.cancelled += 1
            raise

    async def aclose(self) -> None:
        self.closed += 1


@dataclass(slots=True)
class FakeEvaluator:
    """Scores as scripted; remembers its requests."""

    how: Judge = agree
    judged: list[ScoringRequest] = field(default_factory=list)
    closed: int = 0

    async def score(self, judged: ScoringRequest) -> p.Score:
        self.judged.append(judged)
        return await self.how(judged)

    async def aclose(self) -> None:
        self.closed += 1


def judged_by(*names: str, timeout: float = 60.0) -> tuple[EvaluatorSpec, ...]:
    return tuple(EvaluatorSpec("fake", name, timeout=timeout) for name in names)


class Harness:
    """One world without a server; `target` and `evaluators` are what specs get."""

    def __init__(self, spec: BatchSpec | None = None, settings: ExecutorSettings = SETTINGS) -> None:
        self.loop = asyncio.get_running_loop()
        self.spec = spec or BatchSpec("batch", (TARGET,))
        self.settings = settings
        self.log = MemoryEventLog(lambda: int(self.clock() * 1000))
        self.tasks = MemoryTaskQueue(self.clock)
        self.batch_registry = MemoryBatchRegistry()
        self.executor_registry = MemoryExecutorRegistry(self.clock)
        self.target = FakeTarget()
        self.evaluators: dict[str, FakeEvaluator] = {}
        self.lives = 0
        self.lanes: Lanes | None = None
        self.budgets: BudgetAccounts | None = None
        self.uses: dict[str, LaneUse] = {}
        """By the label of a target, or the name of an evaluator."""

    def clock(self) -> float:
        return BEGINNING + self.loop.time()

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.clock(), UTC)

    def make_target(self, spec: TargetSpec, _environment: ExecutionEnvironment) -> Target:
        if spec.type != "fake":
            raise ValueError(f"there is no target {spec.type!r}")
        return self.target

    def make_evaluator(self, spec: EvaluatorSpec, _environment: ExecutionEnvironment) -> Evaluator:
        if spec.type != "fake":
            raise ValueError(f"there is no evaluator {spec.type!r}")
        return self.evaluators.setdefault(spec.name, FakeEvaluator())

    def lane_use(
        self, spec: TargetSpec | EvaluatorSpec, _place: BatchContext, _environment: ExecutionEnvironment
    ) -> LaneUse | None:
        return self.uses.get(spec.label if isinstance(spec, TargetSpec) else spec.name)

    async def register(
        self, batch_id: str = BATCH, *, state: BatchState = BatchState.RUNNING, **entry: Any
    ) -> None:
        partitions = QueueLayout(batch_id, self.spec).partitions
        await self.batch_registry.upsert(
            BatchEntry(batch_id, state, partitions=partitions, **entry), pack(self.spec)
        )

    async def write(
        self, payload: p.AnyPayload, evaluation_id: str, *, attempt: int, sequence: int
    ) -> None:
        new = event(payload, evaluation_id=evaluation_id, attempt=attempt, sequence=sequence)
        await self.log.append([Append(evaluation_id, records([new]), epoch="")])

    async def queue(
        self,
        evaluation_id: str,
        *,
        batch_id: str = BATCH,
        attempt: int = 1,
        opening: p.Queued | None = None,
    ) -> None:
        """Act as the coordinator: open an attempt and enqueue its task."""
        opening = opening or p.Queued(case=CASE)
        await self.write(opening, evaluation_id, attempt=attempt, sequence=0)
        queue = QueueLayout(batch_id, self.spec).queue_for(opening)
        await self.tasks.enqueue(queue, Task(evaluation_id, attempt))

    async def fence(self, evaluation_id: str, *, attempt: int = 2) -> None:
        """Act as the coordinator: fence the evaluation by an attempt that ends it."""
        await self.write(p.Cancelled(by="operator"), evaluation_id, attempt=attempt, sequence=0)

    async def events(self, evaluation_id: str) -> list[Event]:
        (raw,) = await self.log.read([evaluation_id], limit=1_000)
        return [decode_body(fields[fields.index(b"event") + 1]) for _, fields in raw]

    async def story(self, evaluation_id: str) -> str:
        return " ".join(each.type for each in await self.events(evaluation_id))

    async def last(self, evaluation_id: str) -> Any:
        return (await self.events(evaluation_id))[-1].data

    async def is_drained(self, batch_id: str = BATCH) -> bool:
        [counts] = await self.tasks.counts([batch_id])
        return counts.is_drained

    @asynccontextmanager
    async def executor(
        self, *, admission: Admission | None = None, log: Any = None, **instead: Any
    ) -> AsyncIterator[Executor]:
        """Run an executor; leaving the block stops it and waits for the end."""
        self.lives += 1
        instance_id = f"{self.settings.name}-{self.lives}"
        events = EventQueue(log or self.log, source=instance_id, now=self.now, clock=self.loop.time)
        usual: dict[str, Any] = {
            "tasks": self.tasks,
            "batch_registry": self.batch_registry,
            "executor_registry": self.executor_registry,
            "admission": admission,
            "lanes": self.lanes,
            "budgets": self.budgets,
            "now": self.now,
            "jitter": lambda: 0.5,
        }
        ports = Ports(events, **(usual | instead))
        async with events:
            executor = Executor(
                ports,
                self.settings,
                Factories(self.make_target, self.make_evaluator, self.lane_use),
                instance_id=instance_id,
            )
            running = asyncio.create_task(executor.run())
            try:
                yield executor
            finally:
                executor.stop()
                await running
