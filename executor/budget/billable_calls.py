"""Which calls of a batch are paid for, by kind: one for each target, one for each evaluator."""

from executor.batch_runtime import BatchEvaluator, BatchRuntime
from executor.budget.task_budget import BillableCall
from executor.contract import Permanent, ScoringRequest, SupportsRequestSize, TargetRequest

NEVER_PAID = frozenset({"recorded"})
"""Types of targets whose answers are known."""


def target_call(runtime: BatchRuntime, number: int, request: TargetRequest | None = None) -> BillableCall:
    """Describe a call of a target; without a request, only what bounds every call of it."""
    place = number % len(runtime.targets)
    target = runtime.targets[place]
    size = target.request_size(request) if isinstance(target, SupportsRequestSize) else None
    return BillableCall(f"target:{place}", size, is_free=runtime.spec.targets[place].type in NEVER_PAID)


def judge_call(judge: BatchEvaluator, judged: ScoringRequest | None = None) -> BillableCall:
    """Describe a call of an evaluator; one without a lane is free until a cost is observed."""
    evaluator = judge.evaluator
    size = evaluator.request_size(judged) if isinstance(evaluator, SupportsRequestSize) else None
    return BillableCall(f"judge:{judge.spec.name}", size, is_free=not judge.spec.is_metered)


def judge_calls(runtime: BatchRuntime) -> list[BillableCall]:
    """Describe the evaluators of a batch."""
    return [judge_call(each) for each in runtime.evaluators if not isinstance(each, Permanent)]
