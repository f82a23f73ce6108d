"""A coordinator and a provider without servers; the coordinator may crash at any call, and start again.

harness = await a_harness(5)
await harness.run_cycle()             # one cycle of the coordinator and of its provider batches
harness.provider.finish()             # the provider ends all its batches
"""

from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from decimal import Decimal
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import Any

from coordinator.acceptance import accept
from coordinator.coordinator import Coordinator, CoordinatorPorts
from coordinator.operations import Operator
from coordinator.provider_batches.context import ProviderPorts
from coordinator.provider_batches.memory import MemoryProvider
from coordinator.provider_batches.settings import ProviderBatchSettings
from coordinator.settings import CoordinatorSettings
from coordinator.submission import NewEvaluation
from domain.batch_spec import BatchFallback, BatchSpec, TargetSpec
from domain.ids import evaluation_id
from eventlog import payloads as p
from eventlog.events import EventKey
from eventlog.keys import DEFAULT_SHARDS
from eventlog.memory import MemoryEventLog
from projections.folds.change import EvaluationRow
from projections.folds.progress import Progress
from projections.ledger.batch import NewBatch
from projections.ledger.memory import MemoryLedger
from projections.ledger.provider_batches_memory import MemoryProviderBatchRepository
from projections.store.memory import MemoryStore
from storage_worker.storage import Storage
from taskqueue.budget.memory import MemoryBudgets
from taskqueue.memory import MemoryBatchRegistry, MemoryExecutorRegistry, MemoryTaskQueue
from taskqueue.queue_layout import QueueLayout
from taskqueue.tasks import Task
from tests.builders import START
from tests.storage_world import GAP_POLICY

B = "nightly"
CLAUDE = TargetSpec(
    "anthropic",
    "anthropic/claude",
    {"model": "claude", "prices": {"input": 10.0, "output": 100.0}},
    is_metered=True,
)
SPEC = BatchSpec("a batch", (CLAUDE,), retries=2, batch_api=BatchFallback.RESUBMIT)
NO_TIME = timedelta(0)
A_ROUND = timedelta(seconds=20)
COST = 0.5 * (10 * 10 + 2 * 100) / 1e6
"""The cost of one answer, with the discount of one half."""


class Crash(BaseException):
    """The simulated end of the process."""


@dataclass(slots=True)
class CrashPoint:
    """Decides at which moment the process crashes: before or after a call of a port."""

    at: int | None = None
    moments: int = 0

    def moment(self) -> None:
        """Count a moment; raises `Crash` at the chosen one."""
        self.moments += 1
        if self.moments - 1 == self.at:
            raise Crash


class CrashingPort:
    """A port with a moment for a crash before and after each of its calls."""

    def __init__(self, port: Any, crash_point: CrashPoint) -> None:
        self._port, self._crash_point = port, crash_point

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._port, name)
        if isasyncgenfunction(found):
            return self._stream(found)
        return self._call(found) if iscoroutinefunction(found) else found

    def _call(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def call(*args: Any, **named: Any) -> Any:
            self._crash_point.moment()
            result = await method(*args, **named)
            self._crash_point.moment()
            return result

        return call

    def _stream(self, method: Callable[..., Any]) -> Callable[..., Any]:
        async def stream(*args: Any, **named: Any) -> AsyncIterator[Any]:
            async for one in method(*args, **named):
                self._crash_point.moment()
                yield one

        return stream


@dataclass(slots=True)
class Harness:
    """All servers in memory, and the current coordinator."""

    settings: CoordinatorSettings
    now: datetime = START
    crash_point: CrashPoint = field(default_factory=CrashPoint)

    def __post_init__(self) -> None:
        self.tables = MemoryStore(self.clock)
        self.ledger = MemoryLedger(self.tables, shards=DEFAULT_SHARDS, now=lambda: self.now)
        self.repository = MemoryProviderBatchRepository(self.ledger)
        self.log = MemoryEventLog(lambda: int(self.clock() * 1000))
        self.queue = MemoryTaskQueue(self.clock)
        self.batch_registry = MemoryBatchRegistry()
        self.executor_registry = MemoryExecutorRegistry(self.clock)
        self.provider = MemoryProvider(lambda: self.now)
        self.budgets = MemoryBudgets(self.clock)
        self.coordinator = self.another()

    # Set in `__post_init__`.
    tables: MemoryStore = field(init=False)
    ledger: MemoryLedger = field(init=False)
    repository: MemoryProviderBatchRepository = field(init=False)
    log: MemoryEventLog = field(init=False)
    queue: MemoryTaskQueue = field(init=False)
    batch_registry: MemoryBatchRegistry = field(init=False)
    executor_registry: MemoryExecutorRegistry = field(init=False)
    provider: MemoryProvider = field(init=False)
    budgets: MemoryBudgets = field(init=False)
    coordinator: Coordinator = field(init=False)

    def clock(self) -> float:
        """Return monotonic seconds."""
        return 1_000.0 + (self.now - START).total_seconds()

    def another(self) -> Coordinator:
        """Return a coordinator that has just started."""

        def crashing(port: Any) -> Any:
            return CrashingPort(port, self.crash_point)

        provider: Any = crashing(self.provider)
        ports = CoordinatorPorts(
            *(crashing(self.log), crashing(self.ledger), crashing(self.queue)),
            *(self.batch_registry, self.executor_registry, self.budgets),
            ProviderPorts(crashing(self.repository), lambda _target: provider),
        )
        return Coordinator(ports, settings=self.settings, now=lambda: self.now, clock=self.clock)

    @property
    def operator(self) -> Operator:
        """Return an operator with a coordinator of its own."""
        return Operator(self.ledger, self.another(), "ada")

    async def submit(
        self,
        evaluations: Sequence[NewEvaluation],
        spec: BatchSpec = SPEC,
        max_cost_usd: Decimal | None = None,
    ) -> None:
        """Accept a batch."""

        async def each() -> AsyncIterator[NewEvaluation]:
            for one in evaluations:
                yield one

        batch = NewBatch(B, spec, max_cost_usd=max_cost_usd)
        await accept(self.ledger, batch, each(), now=self.now, shards=DEFAULT_SHARDS)

    async def store(self) -> None:
        """Apply all streams, as a storage worker does."""
        await Storage(self.log, self.tables, GAP_POLICY).store(sorted(self.tables.evaluations))

    async def run_cycle(self, times: int = 1) -> None:
        """Run cycles of the coordinator and of its provider batches, and advance the time after each."""
        for _ in range(times):
            await self.coordinator.run_cycle()
            assert self.coordinator.provider_batches
            await self.coordinator.provider_batches.run_cycle()
            self.now += A_ROUND

    async def run_cycles_with_crashes(self, times: int) -> None:
        """Run cycles; after a crash, a new coordinator continues."""
        for _ in range(times):
            try:
                await self.run_cycle()
            except Crash:
                self.coordinator = self.another()

    def row(self, number: int) -> EvaluationRow:
        """Return the row of an evaluation."""
        return self.tables.evaluations[evaluation_id(B, number)].row

    def phases(self) -> list[str]:
        """Return attempt and phase of each evaluation."""
        rows = (held.row for _, held in sorted(self.tables.evaluations.items()))
        return [f"{row.cursor.attempt} {row.cursor.phase}" for row in rows]

    def events(self, number: int) -> list[str]:
        """Return the stored events of an evaluation."""
        stored: Any = self.tables.stored_of(evaluation_id(B, number))
        keys: list[EventKey] = sorted(stored)
        return [f"{key[0]} {stored[key].type}{_verdict(stored[key].verdict)}" for key in keys]

    async def opening(self, number: int) -> p.Queued:
        """Return the payload of the newest opening."""
        [one] = await self.ledger.openings([evaluation_id(B, number)])
        data = one.events[0][0].data
        assert isinstance(data, p.Queued)
        return data

    async def tasks(self, spec: BatchSpec = SPEC) -> list[Task]:
        """Consume and ack all tasks of all queues."""
        queues = dict.fromkeys(QueueLayout(B, spec).queues, 10_000)
        taken = await self.queue.consume("executor", queues, block=NO_TIME)
        await self.queue.ack("executor", taken)
        return sorted({each.task for each in taken})

    def total(self) -> Progress:
        """Return the sum of all progress counters."""
        total = Progress()
        for each in self.tables.progress.values():
            total += each
        return total

    def asked(self) -> Counter[int]:
        """Return how often each evaluation was requested from the provider."""
        requests = (each for held in self.provider.batches.values() for each in held.requests)
        return Counter(int(each["custom_id"].rpartition("-")[2]) for each in requests)

    def note(self) -> str:
        """Return the note of the only provider batch."""
        [provider_batch] = self.repository.provider_batches.values()
        return provider_batch.note


def _verdict(verdict: str) -> str:
    return "" if verdict == "applied" else f" ({verdict})"


def cases(many: int, **known: p.Answer) -> list[NewEvaluation]:
    """Create evaluations; those named by `_` and their number have an answer."""
    return [
        NewEvaluation(p.Case(id=f"case-{n}", input=f"question {n}"), answer=known.get(f"_{n}"))
        for n in range(1, many + 1)
    ]


async def a_harness(
    many: int = 5,
    *,
    spec: BatchSpec = SPEC,
    evaluations: Sequence[NewEvaluation] | None = None,
    window: int = 20_000,
    page_size: int = 2_000,
    max_cost_usd: Decimal | None = None,
    **provider: Any,
) -> Harness:
    """Create a harness with one accepted batch."""
    a_minute = timedelta(minutes=1)
    usual = {"page": 2, "max_requests": 3, "submit_timeout": a_minute, "margin": a_minute}
    settings = ProviderBatchSettings(**{**usual, **provider})
    timing = CoordinatorSettings(reconcile_interval=NO_TIME, unchanged_for=NO_TIME, grace=NO_TIME)
    harness = Harness(replace(timing, window=window, page_size=page_size, provider=settings))
    await harness.submit(cases(many) if evaluations is None else evaluations, spec, max_cost_usd)
    return harness


def with_fallback(fallback: BatchFallback, *, retries: int = 2) -> BatchSpec:
    """Return a spec with this fallback for requests that a provider batch did not answer."""
    return replace(SPEC, batch_api=fallback, retries=retries)
