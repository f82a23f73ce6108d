"""The lane that a target or an evaluator is assigned to, and the limits that its batch declares on it."""

from collections.abc import Iterator
from typing import NamedTuple

from domain.batch_spec import BatchSpec, EvaluatorSpec, Limits, TargetSpec
from executor.contract import ExecutionEnvironment, Metered
from executor.lanes.contract import LaneLimit, LanePolicy
from executor.lanes.permits import LaneUse
from executor.registry import evaluator_type, target_type


class BatchContext(NamedTuple):
    """The batch of a target or an evaluator."""

    batch_id: str
    batch: BatchSpec


def lane_use(
    spec: TargetSpec | EvaluatorSpec, context: BatchContext, here: ExecutionEnvironment
) -> LaneUse | None:
    """Return the lane with its policy and limits; None if calls are not metered, or can't be made."""
    if not spec.is_metered:
        return None
    policy = LanePolicy(breaker_failures=here.breaker_failures, breaker_seconds=here.breaker_seconds)
    kind = target_type(spec.type) if isinstance(spec, TargetSpec) else evaluator_type(spec.type)
    if not isinstance(kind, Metered):
        name = spec.label if isinstance(spec, TargetSpec) else spec.name
        lane = name if name.startswith(spec.type) else f"{spec.type}:{name}"
        return LaneUse(lane, policy, limits=tuple(limits_on(lane, spec, context)))
    metered_lane = kind.lane(spec.options, here)
    if not metered_lane:
        return None
    limits = tuple(limits_on(metered_lane, spec, context))
    return LaneUse(metered_lane, policy, kind.tokens(spec.options), limits)


def limits_on(lane: str, spec: TargetSpec | EvaluatorSpec, context: BatchContext) -> Iterator[LaneLimit]:
    """List the limits that a batch declares on a lane; of each kind only the most specific counts."""
    covered: set[str] = set()
    for key, limits in _sources(lane, spec, context.batch):
        values = {kind: value for kind, value in _values(limits).items() if kind not in covered}
        covered |= values.keys()
        if values:
            yield LaneLimit(f"{context.batch_id} {key}", **values)  # type: ignore[arg-type]  # by name


def _sources(lane: str, spec: TargetSpec | EvaluatorSpec, batch: BatchSpec) -> Iterator[tuple[str, Limits]]:
    """List the spec's limits that apply to a lane with their keys, the most specific first."""
    if spec.rate_limits:
        own = f"targets.{spec.label}" if isinstance(spec, TargetSpec) else f"evaluators.{spec.name}"
        yield own, spec.rate_limits
    for name in sorted(batch.accounts, key=len, reverse=True):
        if lane == name or lane.startswith(f"{name}:"):
            yield f"accounts.{name}", batch.accounts[name]
    yield "limits", batch.limits


def _values(limits: Limits) -> dict[str, float]:
    values = {
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "max_concurrency": limits.max_concurrency,
        "gap": limits.delay or None,
    }
    return {kind: value for kind, value in values.items() if value is not None}


def overall_use(context: BatchContext) -> LaneUse | None:
    """Return the lane that limits the calls in flight of a whole batch, of all targets and evaluators."""
    limit = context.batch.max_concurrency
    if limit is None:
        return None
    declared = LaneLimit(f"{context.batch_id} max_concurrency", max_concurrency=limit)
    policy = LanePolicy(is_adaptive=False)
    return LaneUse(f"batch:{context.batch_id}", policy, limits=(declared,), is_overall=True)
