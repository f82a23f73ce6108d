"""Which lane a target or an evaluator has to ask."""

from executor.contract import Metered, Surroundings
from executor.lanes.contract import Policy
from executor.lanes.permits import LaneUse
from executor.registry import evaluator_type, target_type
from taskqueue.spec import EvaluatorSpec, Limits, TargetSpec


def lane_use(spec: TargetSpec | EvaluatorSpec, limits: Limits, here: Surroundings) -> LaneUse | None:
    """Name the lane, with what is known of it; None where nobody counts, or nobody can be called anyhow."""
    if not spec.is_metered:
        return None
    policy = Policy(
        rpm=limits.rpm,
        tpm=limits.tpm,
        max_concurrency=limits.max_concurrency,
        gap=limits.delay,
        breaker_failures=here.breaker_failures,
        breaker_seconds=here.breaker_seconds,
    )
    kind = target_type(spec.type) if isinstance(spec, TargetSpec) else evaluator_type(spec.type)
    if not isinstance(kind, Metered):
        name = spec.label if isinstance(spec, TargetSpec) else spec.name
        return LaneUse(name if name.startswith(spec.type) else f"{spec.type}:{name}", policy)
    lane = kind.lane(spec.options, here)
    return LaneUse(lane, policy, kind.tokens(spec.options)) if lane else None
