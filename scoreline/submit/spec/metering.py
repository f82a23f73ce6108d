"""Which targets and evaluators of a batch have a lane: their calls are counted, and wait in a line."""

from dataclasses import replace

from domain.batch_spec import BatchSpec, EvaluatorSpec, Limits, TargetSpec
from executor.contract import Metered
from executor.registry import evaluator_type, target_type


def metered(batch: BatchSpec) -> BatchSpec:
    """Mark metered targets: types whose provider has limits and, where limits were given, every target."""
    is_limited = batch.limits != Limits() or batch.max_concurrency is not None
    return replace(
        batch,
        targets=tuple(_target(each, is_limited=is_limited) for each in batch.targets),
        evaluators=tuple(map(_evaluator, batch.evaluators)),
    )


def _target(spec: TargetSpec, *, is_limited: bool) -> TargetSpec:
    # Recorded answers make no call.
    is_limited = (is_limited or spec.rate_limits is not None) and spec.type != "recorded"
    return replace(spec, is_metered=is_limited or isinstance(target_type(spec.type), Metered))


def _evaluator(spec: EvaluatorSpec) -> EvaluatorSpec:
    is_counted = isinstance(evaluator_type(spec.type), Metered)
    return replace(spec, is_metered=is_counted or spec.rate_limits is not None)
