"""A run in virtual time: real executors, real lanes in memory, a provider that writes down what it sees."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import timedelta
from random import Random

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec, pack
from domain.eligibility import Eligibility
from eventlog import payloads as p
from executor.contract import ExecutionEnvironment, ScoringRequest, TargetReply, TargetRequest
from executor.lanes.assignment import BatchContext, limits_on
from executor.lanes.contract import LanePolicy
from executor.lanes.memory import MemoryLanes
from executor.lanes.permits import LaneUse
from executor.settings import ExecutorSettings
from taskqueue.batch_registry import BatchEntry, BatchState
from taskqueue.queue_layout import QueueLayout
from taskqueue.tasks import Task
from tests.limits.measure import Call, InForce, violations
from tests.limits.plans import BatchPlan, RunPlan
from tests.simulation.virtual_loop import VirtualLoop, run_virtually
from tests.unit.executor.harness import FakeEvaluator, Harness

SHARED = "shared"
MODEL = TargetSpec("fake", "model", is_metered=True)
JUDGE = EvaluatorSpec("fake", "judge", is_metered=True)


class LaneHarness(Harness):
    """A harness on which every target and judge uses one lane, with the limits of its batch."""

    def lane_use(
        self, spec: TargetSpec | EvaluatorSpec, place: BatchContext, _surroundings: ExecutionEnvironment
    ) -> LaneUse | None:
        """Use the shared lane."""
        return LaneUse(SHARED, LanePolicy(), 200.0, tuple(limits_on(SHARED, spec, place)))


@dataclass
class Run:
    """One run on its way."""

    plan: RunPlan
    harness: Harness
    random: Random
    calls: list[Call] = field(default_factory=list)
    over: dict[str, float] = field(default_factory=dict)

    async def called(self, batch_id: str) -> int:
        """Take a call as the provider does."""
        tokens = self.random.randint(*self.plan.tokens)
        call = Call(batch_id, self.harness.clock(), tokens)
        self.calls.append(call)
        try:
            await asyncio.sleep(self.random.uniform(*self.plan.latency))
        finally:
            call.ended = self.harness.clock()
        return tokens

    async def answer(self, question: TargetRequest) -> TargetReply:
        """Answer as a target."""
        tokens = await self.called(question.evaluation_id.partition(".")[0])
        return TargetReply(p.Answer(output="4", usage=p.TokenUsage(input_tokens=tokens), latency_ms=1.0))

    async def score(self, judged: ScoringRequest) -> p.Score:
        """Judge as a model."""
        tokens = await self.called(judged.case.id.partition(".")[0])
        return p.Score(evaluator="judge", score=1.0, passed=True, usage=p.TokenUsage(input_tokens=tokens))

    async def batch(self, plan: BatchPlan) -> None:
        """Have a batch begin and be over as planned."""
        await asyncio.sleep(plan.begins)
        judges = (JUDGE,) if plan.is_judged else ()
        spec = BatchSpec(
            "batch", (MODEL,), evaluators=judges, limits=plan.limits, max_concurrency=plan.overall
        )
        layout = QueueLayout(plan.batch_id, spec)
        entry = BatchEntry(plan.batch_id, project=plan.batch_id, partitions=layout.partitions)
        await self.harness.batch_registry.upsert(entry, pack(spec))
        for number in range(plan.tasks):
            await self._enqueue(f"{plan.batch_id}.{number}", layout)
        await asyncio.sleep(plan.over - plan.begins)
        self.over[plan.batch_id] = self.harness.clock()
        if plan.is_paused:
            await self.harness.batch_registry.upsert(replace(entry, state=BatchState.PAUSED), pack(spec))
        else:
            await self.harness.batch_registry.unregister(plan.batch_id)

    async def _enqueue(self, evaluation_id: str, layout: QueueLayout) -> None:
        opening = p.Queued(case=p.Case(id=evaluation_id, input="2+2", expected="4"))
        await self.harness.write(opening, evaluation_id, attempt=1, sequence=0)
        await self.harness.tasks.enqueue(layout.queue_for(opening), Task(evaluation_id, 1))

    def in_force(self) -> list[InForce]:
        """List the limits, and when each was in force."""
        found = []
        for plan in self.plan.batches:
            own = [call.started for call in self.calls if call.batch_id == plan.batch_id]
            if own:
                over = self.over[plan.batch_id]
                found.append(InForce(plan.batch_id, plan.limits, min(own), over, plan.overall))
        return found


async def _run(plan: RunPlan) -> Run:
    settings = ExecutorSettings("worker", slots=plan.slots, drain=timedelta(seconds=20))
    harness = LaneHarness(settings=settings)
    harness.lanes = MemoryLanes(harness.clock)
    run = Run(plan, harness, Random(plan.seed))
    harness.target.how = run.answer
    harness.evaluators["judge"] = FakeEvaluator(run.score)
    async with AsyncExitStack() as fleet:
        for project in _projects(plan):
            harness.settings = replace(settings, eligibility=Eligibility(project=project))
            await fleet.enter_async_context(harness.executor())
            await asyncio.sleep(run.random.uniform(0.0, 2.0))
        await asyncio.gather(*map(run.batch, plan.batches))
    return run


def _projects(plan: RunPlan) -> list[str | None]:
    """Name what each executor works for; None: everything."""
    if not plan.is_scoped:
        return [None] * plan.executors
    number = max(plan.executors, len(plan.batches))
    return [plan.batches[index % len(plan.batches)].batch_id for index in range(number)]


def run_in_virtual_time(plan: RunPlan) -> tuple[list[str], int]:
    """Run, and return which limits were exceeded, and how many calls there were."""
    done: list[Run] = []

    async def go() -> None:
        done.append(await _run(plan))

    run_virtually(go(), VirtualLoop())
    [run] = done
    return violations(run.calls, run.in_force()), len(run.calls)
