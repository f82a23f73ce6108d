"""What a batch needs in this process: its spec, its targets and its evaluators, made once.

What can't be made is kept as the fault it is: the evaluations that need it fail, and say why.
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
    _spec: TargetSpec | EvaluatorSpec, _place: BatchContext, _here: ExecutionEnvironment
) -> LaneUse | None:
    """Have nobody to ask."""
    return None


@dataclass(frozen=True, slots=True)
class Factories:
    """How targets and evaluators are made."""

    target: Callable[[TargetSpec, ExecutionEnvironment], Target]
    evaluator: Callable[[EvaluatorSpec, ExecutionEnvironment], Evaluator]
    lane: Callable[[TargetSpec | EvaluatorSpec, BatchContext, ExecutionEnvironment], LaneUse | None] = (
        no_lane
    )
    """Which lane something has to ask."""


@dataclass(frozen=True, slots=True)
class BatchEvaluator:
    """An evaluator and what the batch says of it."""

    spec: EvaluatorSpec
    evaluator: Evaluator
    lane: LaneUse | None = None


@dataclass(frozen=True)
class BatchRuntime:
    """All that is needed to work on a batch."""

    spec: BatchSpec
    variants: tuple[Variant, ...]
    targets: tuple[Target | Permanent, ...]
    judges: tuple[BatchEvaluator | Permanent, ...]
    lanes: tuple[LaneUse | None, ...] = ()
    """Those of the targets."""
    overall: LaneUse | None = None
    """The lane that counts all calls of the batch, where those are limited."""

    def variant(self, number: int) -> Variant:
        """Find a variant; raises `Permanent` where there is none of that number."""
        if number >= len(self.variants):
            raise invalid(f"the batch has {len(self.variants)} variants, and none of number {number}")
        return self.variants[number]

    def target(self, number: int) -> Target:
        """Find the target of a variant; raises `Permanent` where it could not be made."""
        return _made(self.targets[number % len(self.targets)])

    def lane(self, number: int) -> LaneUse | None:
        """Find the lane of a variant's target."""
        return self.lanes[number % len(self.targets)] if self.lanes else None

    def uses(self, partition: str) -> tuple[LaneUse, ...]:
        """Say which lanes the tasks in one of the batch's queues have to ask before they are taken."""
        found = self._judges_lanes() if partition == SCORING_PARTITION else self._target_lanes(partition)
        return (*found, self.overall) if found and self.overall else found

    def _judges_lanes(self) -> tuple[LaneUse, ...]:
        judges = [judge.lane for judge in self.judges if isinstance(judge, BatchEvaluator)]
        return tuple({use.lane: use for use in judges if use}.values())

    def _target_lanes(self, partition: str) -> tuple[LaneUse, ...]:
        number = target_number(partition)
        use = self.lanes[number] if number is not None and number < len(self.lanes) else None
        return (use,) if use else ()

    @cached_property
    def limits(self) -> tuple[tuple[str, LaneLimit], ...]:
        """The limits that the batch declares, each with its lane."""
        judges = (judge.lane for judge in self.judges if isinstance(judge, BatchEvaluator))
        uses = (use for use in (*self.lanes, *judges, self.overall) if use)
        return tuple((use.lane, limit) for use in uses for limit in use.limits)

    def all_judges(self) -> list[BatchEvaluator]:
        """List the evaluators; raises `Permanent` where one of them could not be made."""
        return [_made(judge) for judge in self.judges]

    @property
    def _made(self) -> list[Target | Evaluator]:
        targets: list[Target | Evaluator] = [
            each for each in self.targets if not isinstance(each, Permanent)
        ]
        return targets + [judge.evaluator for judge in self.judges if isinstance(judge, BatchEvaluator)]

    async def warm_up(self) -> None:
        """Get everything ready that takes its time; what fails now will fail, and say why, when called."""
        warming = [each.warm_up() for each in self._made if isinstance(each, SupportsWarmUp)]
        await asyncio.gather(*warming, return_exceptions=True)

    async def aclose(self) -> None:
        """Close what was made; one that fails does not keep the others open."""
        await asyncio.gather(*map(_close, self._made))


class RuntimeCache:
    """The runtimes of this process, one a batch."""

    def __init__(
        self, batch_registry: BatchRegistry, factories: Factories, environment: ExecutionEnvironment
    ) -> None:
        self._batch_registry = batch_registry
        self._factories = factories
        self._surroundings = environment
        self._runtimes: dict[str, BatchRuntime | Permanent] = {}
        self._making = asyncio.Lock()

    async def of(self, batch_id: str) -> BatchRuntime | Permanent:
        """Return a batch's runtime, or why there is none."""
        if batch_id in self._runtimes:
            return self._runtimes[batch_id]
        async with self._making:
            if batch_id in self._runtimes:
                return self._runtimes[batch_id]
            body = await self._batch_registry.spec(batch_id)
            if body is None:
                return invalid("the batch's spec is not in the batch registry")
            self._runtimes[batch_id] = runtime = self._make(batch_id, body)
            if isinstance(runtime, BatchRuntime):
                await runtime.warm_up()
                await self._note_lanes(batch_id, runtime)
            return runtime  # not looked up again: the batch may be over by now

    async def uses(self, queue: str) -> tuple[LaneUse, ...]:
        """Say which lanes the tasks in a queue have to ask; none where nothing can be called anyhow."""
        batch_id, partition = split_queue(queue)
        runtime = await self.of(batch_id) if partition else None
        return runtime.uses(partition) if isinstance(runtime, BatchRuntime) else ()

    def limits(self, batch_ids: Collection[str]) -> dict[str, dict[str, LaneLimit]]:
        """Return the limits that some batches declare: by lane, and by origin."""
        found: dict[str, dict[str, LaneLimit]] = {}
        for batch_id in batch_ids:
            runtime = self._runtimes.get(batch_id)
            for lane, limit in runtime.limits if isinstance(runtime, BatchRuntime) else ():
                found.setdefault(lane, {})[limit.origin] = limit
        return found

    async def _note_lanes(self, batch_id: str, runtime: BatchRuntime) -> None:
        """Let people see what the queues of a batch wait for."""
        uses = {
            partition: runtime.uses(partition)
            for partition in QueueLayout(batch_id, runtime.spec).partitions
        }
        lanes = {partition: [use.lane for use in each] for partition, each in uses.items() if each}
        await self._batch_registry.set_lanes(batch_id, lanes)

    async def keep_only(self, batch_ids: Collection[str]) -> None:
        """Close the runtimes of batches that are gone."""
        for batch_id in self._runtimes.keys() - set(batch_ids):
            runtime = self._runtimes.pop(batch_id)
            if isinstance(runtime, BatchRuntime):
                await runtime.aclose()

    async def aclose(self) -> None:
        """Close them all."""
        await self.keep_only(())

    def _make(self, batch_id: str, body: bytes) -> BatchRuntime | Permanent:
        try:
            spec = unpack(body)
        except ValidationError as error:
            return invalid(f"the batch's spec can't be read: {error}")
        here = replace(self._surroundings, workdir=spec.workdir, interpreter=spec.interpreter)
        targets = tuple(_attempt("target", self._factories.target, each, here) for each in spec.targets)
        place = BatchContext(batch_id, spec)
        judges = tuple(self._judge(each, place, here) for each in spec.evaluators)
        lanes = tuple(self._lane(each, place, here) for each in spec.targets)
        return BatchRuntime(spec, spec.variants, targets, judges, lanes, overall_use(place))

    def _lane(
        self, spec: TargetSpec | EvaluatorSpec, place: BatchContext, here: ExecutionEnvironment
    ) -> LaneUse | None:
        """Find a lane; where there is none for want of a key, the call itself will say so."""
        try:
            return self._factories.lane(spec, place, here)
        except ValueError:
            return None

    def _judge(
        self, spec: EvaluatorSpec, place: BatchContext, here: ExecutionEnvironment
    ) -> BatchEvaluator | Permanent:
        made = _attempt("evaluator", self._factories.evaluator, spec, here)
        return (
            made
            if isinstance(made, Permanent)
            else BatchEvaluator(spec, made, self._lane(spec, place, here))
        )


def invalid(message: str) -> Permanent:
    """Say that a batch or a case can't be worked on as it is."""
    return Permanent("invalid", message)


async def _close(made: Target | Evaluator) -> None:
    try:
        async with asyncio.timeout(CLOSING_SECONDS):
            await made.aclose()
    except Exception as error:  # noqa: BLE001 - it may be anybody's code
        logger.warning("could not close", extra={"what": repr(made), "error": repr(error)})


def _made(thing: M | Permanent) -> M:
    if isinstance(thing, Permanent):
        # A new one: a fault that is raised many times would gather the tracebacks of all of them.
        raise Permanent(thing.kind, thing.message)
    return thing


def _attempt(
    what: str, make: Callable[[S, ExecutionEnvironment], M], spec: S, here: ExecutionEnvironment
) -> M | Permanent:
    """Make something; it may be anybody's code, so anything may go wrong."""
    try:
        return make(spec, here)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above, anybody's
        logger.warning("could not make", extra={"what": what, "type": spec.type, "error": repr(error)})
        return invalid(f"{what} {spec.type}: {type(error).__name__}: {error}")
