"""The runtime of a batch: created once, closed once, isolated from other batches."""

import asyncio

import pytest

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec, pack
from executor.batch_runtime import BatchRuntime, Factories, RuntimeCache
from executor.contract import ExecutionEnvironment, Permanent
from taskqueue.batch_registry import BatchEntry
from taskqueue.memory import MemoryBatchRegistry
from tests.unit.executor.harness import FakeEvaluator, FakeTarget

SPEC = BatchSpec(
    "batch",
    (TargetSpec("fake", "one"), TargetSpec("broken", "two")),
    ("{input}", "again: {input}"),
    evaluators=(EvaluatorSpec("fake", "a"),),
    workdir="/from/here",
)


class SlowBatchRegistry(MemoryBatchRegistry):
    async def spec(self, batch_id: str) -> bytes | None:
        await asyncio.sleep(0)
        return await super().spec(batch_id)


class Workshop:
    """Creates targets, and remembers them."""

    def __init__(self) -> None:
        self.targets: list[FakeTarget] = []
        self.evaluators: list[FakeEvaluator] = []
        self.environment: list[ExecutionEnvironment] = []

    def target(self, spec: TargetSpec, environment: ExecutionEnvironment) -> FakeTarget:
        if spec.type == "broken":
            raise SystemExit("no such module")
        self.environment.append(environment)
        self.targets.append(FakeTarget())
        return self.targets[-1]

    def evaluator(self, _spec: EvaluatorSpec, _surroundings: ExecutionEnvironment) -> FakeEvaluator:
        self.evaluators.append(FakeEvaluator())
        return self.evaluators[-1]


@pytest.fixture
def workshop() -> Workshop:
    return Workshop()


@pytest.fixture
async def runtimes(workshop: Workshop) -> RuntimeCache:
    batch_registry = SlowBatchRegistry()
    await batch_registry.upsert(BatchEntry("b"), pack(SPEC))
    return RuntimeCache(
        batch_registry, Factories(workshop.target, workshop.evaluator), ExecutionEnvironment(slots=7)
    )


async def test_concurrent_requests_create_one_runtime(runtimes, workshop):
    """It owns connections and processes."""
    one, other = await asyncio.gather(runtimes.of("b"), runtimes.of("b"))
    assert one is other
    assert (len(workshop.targets), len(workshop.evaluators)) == (1, 1)


async def test_targets_know_where_the_batch_was_submitted(runtimes, workshop):
    """`python:` targets are imported from there."""
    await runtimes.of("b")
    assert workshop.environment == [ExecutionEnvironment(workdir="/from/here", slots=7)]


async def test_a_target_that_can_not_be_created_fails_only_its_own_variants(runtimes, workshop):
    """The variants of the other target run."""
    runtime = await runtimes.of("b")
    assert isinstance(runtime, BatchRuntime)
    assert runtime.target(0) is runtime.target(2) is workshop.targets[0]
    with pytest.raises(Permanent, match="target broken: SystemExit: no such module"):
        runtime.target(3)


async def test_an_unregistered_batch_has_no_runtime_and_is_looked_up_again(runtimes):
    """The batch registry may have been lost for a moment."""
    missing = await runtimes.of("later")
    assert isinstance(missing, Permanent)
    await runtimes._batch_registry.upsert(BatchEntry("later"), pack(SPEC))
    assert isinstance(await runtimes.of("later"), BatchRuntime)


async def test_runtimes_of_unregistered_batches_are_closed(runtimes, workshop, caplog):
    """One that fails to close does not keep the others open."""
    await runtimes.of("b")

    async def fail() -> None:
        raise OSError("stuck")

    workshop.targets[0].aclose = fail
    await runtimes.keep_only({"b"})
    assert workshop.evaluators[0].closed == 0
    await runtimes.aclose()
    assert workshop.evaluators[0].closed == 1
    assert "closing a target or an evaluator failed" in caplog.text


async def test_a_batch_that_ends_while_its_runtime_is_created_breaks_nothing(runtimes, monkeypatch):
    """The runtime is returned all the same: the executor goes on."""

    async def end(_batch_id, _lanes):
        await runtimes.keep_only(())

    monkeypatch.setattr(runtimes._batch_registry, "set_lanes", end)
    assert isinstance(await runtimes.of("b"), BatchRuntime)
