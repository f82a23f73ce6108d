"""Which lane a target or an evaluator uses, and which limits its batch declares there."""

from collections.abc import Iterator
from typing import NamedTuple

from domain.batch_spec import BatchSpec, EvaluatorSpec, Limits, TargetSpec
from executor.contract import ExecutionEnvironment, Metered
from executor.lanes.contract import LaneLimit, Policy
from executor.lanes.permits import LaneUse
from executor.registry import evaluator_type, target_type


class Place(NamedTuple):
    """Where a target or an evaluator stands."""

    batch_id: str
    batch: BatchSpec


def lane_use(spec: TargetSpec | EvaluatorSpec, place: Place, here: ExecutionEnvironment) -> LaneUse | None:
    """Name the lane, with what is known of it; None where nobody counts, or nobody can be called anyhow."""
    if not spec.is_metered:
        return None
    policy = Policy(breaker_failures=here.breaker_failures, breaker_seconds=here.breaker_seconds)
    kind = target_type(spec.type) if isinstance(spec, TargetSpec) else evaluator_type(spec.type)
    if not isinstance(kind, Metered):
        name = spec.label if isinstance(spec, TargetSpec) else spec.name
        lane = name if name.startswith(spec.type) else f"{spec.type}:{name}"
        return LaneUse(lane, policy, limits=tuple(limits_on(lane, spec, place)))
    found = kind.lane(spec.options, here)
    if not found:
        return None
    return LaneUse(found, policy, kind.tokens(spec.options), tuple(limits_on(found, spec, place)))


def limits_on(lane: str, spec: TargetSpec | EvaluatorSpec, place: Place) -> Iterator[LaneLimit]:
    """List the limits that a batch declares on a lane; of each kind only the most specific counts."""
    taken: set[str] = set()
    for key, limits in _sources(lane, spec, place.batch):
        given = {kind: value for kind, value in _given(limits).items() if kind not in taken}
        taken |= given.keys()
        if given:
            yield LaneLimit(f"{place.batch_id} {key}", **given)  # type: ignore[arg-type]  # by name


def _sources(lane: str, spec: TargetSpec | EvaluatorSpec, batch: BatchSpec) -> Iterator[tuple[str, Limits]]:
    """Name what may say a limit, the most specific first, by the key under which the spec has it."""
    if spec.rate_limits:
        own = f"targets.{spec.label}" if isinstance(spec, TargetSpec) else f"evaluators.{spec.name}"
        yield own, spec.rate_limits
    for name in sorted(batch.accounts, key=len, reverse=True):
        if lane == name or lane.startswith(f"{name}:"):
            yield f"accounts.{name}", batch.accounts[name]
    yield "limits", batch.limits


def _given(limits: Limits) -> dict[str, float]:
    found = {
        "rpm": limits.rpm,
        "tpm": limits.tpm,
        "max_concurrency": limits.max_concurrency,
        "gap": limits.delay or None,
    }
    return {kind: value for kind, value in found.items() if value is not None}


def overall_use(place: Place) -> LaneUse | None:
    """Return the lane of a batch's own: it counts its calls in flight, of all targets and judges."""
    most = place.batch.max_concurrency
    if most is None:
        return None
    limit = LaneLimit(f"{place.batch_id} max_concurrency", max_concurrency=most)
    policy = Policy(is_adaptive=False)
    return LaneUse(f"batch:{place.batch_id}", policy, limits=(limit,), is_overall=True)
