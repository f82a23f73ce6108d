"""The runtime of a batch in this process: its spec, targets, evaluators and lanes, created once and cached.

A target or evaluator that can't be created is kept as its fault: the evaluations that need it fail with it.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

from pydantic import ValidationError

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec, Variant, unpack
from executor.contract import Evaluator, ExecutionEnvironment, Permanent, SupportsWarmUp, Target
from executor.lanes.assignment import BatchContext, overall_use
from executor.lanes.contract import LaneLimit
from executor.lanes.permits import LaneUse
from taskqueue.batch_registry import BatchRegistry
from taskqueue.queue_layout import SCORING_PARTITION, QueueLayout, split_queue, target_number

logger = logging.getLogger(__name__)

CLOSING_SECONDS = 10.0

S = TypeVar("S", TargetSpec, EvaluatorSpec)
M = TypeVar("M")


def no_lane(
    _spec: TargetSpec | EvaluatorSpec, _batch: BatchContext, _here: ExecutionEnvironment
) -> LaneUse | None:
    """Return no lane: nothing is metered."""
    return None


@dataclass(frozen=True, slots=True)
class Factories:
    """Creates the targets, evaluators and lanes of a batch."""

    target: Callable[[TargetSpec, ExecutionEnvironment], Target]
    evaluator: Callable[[EvaluatorSpec, ExecutionEnvironment], Evaluator]
    lane: Callable[[TargetSpec | EvaluatorSpec, BatchContext, ExecutionEnvironment], LaneUse | None] = (
        no_lane
    )
    """The lane of a target or an evaluator."""


@dataclass(frozen=True, slots=True)
class BatchEvaluator:
    """An evaluator with its spec and its lane."""

    spec: EvaluatorSpec
    evaluator: Evaluator
    lane: LaneUse | None = None


@dataclass(frozen=True)
class BatchRuntime:
    """Everything that attempts of a batch need."""

    spec: BatchSpec
    variants: tuple[Variant, ...]
    targets: tuple[Target | Permanent, ...]
    evaluators: tuple[BatchEvaluator | Permanent, ...]
    lanes: tuple[LaneUse | None, ...] = ()
    """Lanes of the targets."""
    overall: LaneUse | None = None
    """The lane that counts all calls of the batch, where those are limited."""

    def variant(self, number: int) -> Variant:
        """Return a variant; raises `Permanent` where the batch has none of that number."""
        if number >= len(self.variants):
            raise invalid(f"the batch has {len(self.variants)} variants, and none of number {number}")
        return self.variants[number]

    def target(self, number: int) -> Target:
        """Return the target of a variant; raises `Permanent` where it could not be created."""
        return required(self.targets[number % len(self.targets)])

    def lane(self, number: int) -> LaneUse | None:
        """Return the lane of a variant's target."""
        return self.lanes[number % len(self.targets)] if self.lanes else None

    def uses(self, partition: str) -> tuple[LaneUse, ...]:
        """Return the lanes whose permits a task of one of the batch's queues needs before it is fetched."""
        found = self._evaluator_lanes() if partition == SCORING_PARTITION else self._target_lanes(partition)
        return (*found, self.overall) if found and self.overall else found

    def _evaluator_lanes(self) -> tuple[LaneUse, ...]:
        lanes = [each.lane for each in self._created_evaluators()]
        return tuple({use.lane: use for use in lanes if use}.values())

    def _created_evaluators(self) -> list[BatchEvaluator]:
        return [each for each in self.evaluators if isinstance(each, BatchEvaluator)]

    def _target_lanes(self, partition: str) -> tuple[LaneUse, ...]:
        number = target_number(partition)
        use = self.lanes[number] if number is not None and number < len(self.lanes) else None
        return (use,) if use else ()

    @cached_property
    def limits(self) -> tuple[tuple[str, LaneLimit], ...]:
        """The limits that the batch declares, each with its lane."""
        evaluators = (each.lane for each in self._created_evaluators())
        uses = (use for use in (*self.lanes, *evaluators, self.overall) if use)
        return tuple((use.lane, limit) for use in uses for limit in use.limits)

    def all_evaluators(self) -> list[BatchEvaluator]:
        """Return the evaluators; raises `Permanent` where one of them could not be created."""
        return [required(each) for each in self.evaluators]

    def _created(self) -> list[Target | Evaluator]:
        targets: list[Target | Evaluator] = [
            each for each in self.targets if not isinstance(each, Permanent)
        ]
        return targets + [each.evaluator for each in self._created_evaluators()]

    async def warm_up(self) -> None:
        """Start everything with a slow start; what fails now fails again, with its reason, when called."""
        warming = [each.warm_up() for each in self._created() if isinstance(each, SupportsWarmUp)]
        await asyncio.gather(*warming, return_exceptions=True)

    async def aclose(self) -> None:
        """Close targets and evaluators; one that fails does not keep the others open."""
        await asyncio.gather(*map(_close, self._created()))


class RuntimeCache:
    """The runtimes of this process, one per batch."""

    def __init__(
        self, batch_registry: BatchRegistry, factories: Factories, environment: ExecutionEnvironment
    ) -> None:
        self._batch_registry = batch_registry
        self._factories = factories
        self._environment = environment
        self._runtimes: dict[str, BatchRuntime | Permanent] = {}
        self._making = asyncio.Lock()

    async def of(self, batch_id: str) -> BatchRuntime | Permanent:
        """Return a batch's runtime, created at the first request; or the fault, where there is none."""
        if batch_id in self._runtimes:
            return self._runtimes[batch_id]
        async with self._making:
            if batch_id in self._runtimes:
                return self._runtimes[batch_id]
            body = await self._batch_registry.spec(batch_id)
            if body is None:
                return invalid("the batch's spec is not in the batch registry")
            self._runtimes[batch_id] = runtime = self._create(batch_id, body)
            if isinstance(runtime, BatchRuntime):
                await runtime.warm_up()
                await self._publish_lanes(batch_id, runtime)
            return runtime  # not looked up again: the batch may be over by now

    async def uses(self, queue: str) -> tuple[LaneUse, ...]:
        """Return the lanes whose permits a task of a queue needs; none where the batch has no runtime."""
        batch_id, partition = split_queue(queue)
        runtime = await self.of(batch_id) if partition else None
        return runtime.uses(partition) if isinstance(runtime, BatchRuntime) else ()

    def limits(self, batch_ids: Collection[str]) -> dict[str, dict[str, LaneLimit]]:
        """Return the limits that some batches declare: by lane, and by origin."""
        limits: dict[str, dict[str, LaneLimit]] = {}
        for batch_id in batch_ids:
            runtime = self._runtimes.get(batch_id)
            for lane, limit in runtime.limits if isinstance(runtime, BatchRuntime) else ():
                limits.setdefault(lane, {})[limit.origin] = limit
        return limits

    async def _publish_lanes(self, batch_id: str, runtime: BatchRuntime) -> None:
        """Publish the lanes of a batch's queues, for status and dashboards."""
        uses = {
            partition: runtime.uses(partition)
            for partition in QueueLayout(batch_id, runtime.spec).partitions
        }
        lanes = {partition: [use.lane for use in each] for partition, each in uses.items() if each}
        await self._batch_registry.set_lanes(batch_id, lanes)

    async def keep_only(self, batch_ids: Collection[str]) -> None:
        """Close the runtimes of all other batches."""
        for batch_id in self._runtimes.keys() - set(batch_ids):
            runtime = self._runtimes.pop(batch_id)
            if isinstance(runtime, BatchRuntime):
                await runtime.aclose()

    async def aclose(self) -> None:
        """Close every runtime."""
        await self.keep_only(())

    def _create(self, batch_id: str, body: bytes) -> BatchRuntime | Permanent:
        try:
            spec = unpack(body)
        except ValidationError as error:
            return invalid(f"the batch's spec can't be read: {error}")
        here = replace(self._environment, workdir=spec.workdir, interpreter=spec.interpreter)
        targets = tuple(
            _create_or_fault("target", self._factories.target, each, here) for each in spec.targets
        )
        batch = BatchContext(batch_id, spec)
        evaluators = tuple(self._evaluator(each, batch, here) for each in spec.evaluators)
        lanes = tuple(self._lane(each, batch, here) for each in spec.targets)
        return BatchRuntime(spec, spec.variants, targets, evaluators, lanes, overall_use(batch))

    def _lane(
        self, spec: TargetSpec | EvaluatorSpec, batch: BatchContext, here: ExecutionEnvironment
    ) -> LaneUse | None:
        """Return a lane; None where its key is missing: the call itself fails with that reason."""
        try:
            return self._factories.lane(spec, batch, here)
        except ValueError:
            return None

    def _evaluator(
        self, spec: EvaluatorSpec, batch: BatchContext, here: ExecutionEnvironment
    ) -> BatchEvaluator | Permanent:
        evaluator = _create_or_fault("evaluator", self._factories.evaluator, spec, here)
        if isinstance(evaluator, Permanent):
            return evaluator
        return BatchEvaluator(spec, evaluator, self._lane(spec, batch, here))


def invalid(message: str) -> Permanent:
    """Return the fault of an invalid batch or case."""
    return Permanent("invalid", message)


def required(value: M | Permanent) -> M:
    """Return a value, or raise the fault in its batch."""
    if isinstance(value, Permanent):
        # A new one: a fault that is raised many times would accumulate all their tracebacks.
        raise Permanent(value.kind, value.message)
    return value


async def _close(closable: Target | Evaluator) -> None:
    try:
        async with asyncio.timeout(CLOSING_SECONDS):
            await closable.aclose()
    except Exception as error:  # noqa: BLE001 - a plugin may raise anything
        logger.warning(
            "closing a target or an evaluator failed", extra={"what": repr(closable), "error": repr(error)}
        )


def _create_or_fault(
    what: str, create: Callable[[S, ExecutionEnvironment], M], spec: S, here: ExecutionEnvironment
) -> M | Permanent:
    """Create a target or an evaluator; the factory may be a plugin, which may raise anything."""
    try:
        return create(spec, here)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above
        about = {"what": what, "type": spec.type, "error": repr(error)}
        logger.warning("creating a target or an evaluator failed", extra=about)
        return invalid(f"{what} {spec.type}: {type(error).__name__}: {error}")
