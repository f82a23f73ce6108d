"""`--mode simulated`: a plan in which no target and no evaluator makes a call.

What would connect to a server, import a module or start a program is replaced by its simulated form, under
a name that shows it; what computes inside the executor stays. The replacement is made before the batch is
stored, so `batch resume`, `batch retry` and every executor have nothing else to run.
"""

from collections.abc import Iterable
from dataclasses import replace

from domain.batch_spec import EvaluatorSpec, TargetSpec
from executor.registry import evaluator_type
from scoreline.submit.spec.components import Evaluators, Targets
from scoreline.submit.spec.errors import SpecError
from scoreline.submit.spec.keys import Place

IN_PROCESS_TARGETS = frozenset({"simulated", "recorded"})
IN_PROCESS_EVALUATORS = frozenset({"simulated", "exact", "contains", "regex", "numeric", "json_schema"})
"""Types that make no call; an entry point's type may do anything, so it is not among them."""
PREFIX, SUFFIX = "simulated: ", " (simulated)"
LONGEST_NAME = 200


def simulate_targets(targets: Targets) -> Targets:
    """Replace every target that would be called."""
    return replace(targets, specs=tuple(map(_target, targets.specs)))


def simulate_evaluators(evaluators: Evaluators) -> Evaluators:
    """Replace every evaluator that would be called; cases must still have the fields that it wants."""
    return tuple(map(_evaluator, evaluators))


def refuse_calls(
    targets: Targets | None,
    evaluators: Evaluators | None,
    *,
    batch_api: object,
    place: Place,
) -> None:
    """Raise `SpecError` where what asks for a simulation also asks for a call."""
    for spec in targets.specs if targets else ():
        if spec.type not in IN_PROCESS_TARGETS:
            raise _conflict(place("targets"), f"{spec.label} would be called")
    for each in evaluators or ():
        if each.type not in IN_PROCESS_EVALUATORS:
            raise _conflict(place("evaluators"), f"{each.name} would be called")
    if batch_api:
        raise _conflict(place("batch_api"), "a provider batch would be submitted")


def _conflict(where: str, what: str) -> SpecError:
    drop, mode = (where, "--mode simulated") if where.startswith("--") else ("this", "mode: simulated")
    return SpecError(
        where,
        f"{what}, and {mode} makes no call. Leave out {mode} to make it, or {drop} for a simulation.",
    )


def name_simulated(targets: Iterable[TargetSpec], evaluators: Iterable[EvaluatorSpec]) -> list[str]:
    """List the names of what was replaced."""
    labels = [spec.label for spec in targets if spec.label.startswith(PREFIX)]
    return labels + [spec.name for spec in evaluators if spec.name.endswith(SUFFIX)]


def _target(spec: TargetSpec) -> TargetSpec:
    if spec.type in IN_PROCESS_TARGETS:
        return spec
    return TargetSpec("simulated", f"{PREFIX}{spec.label}"[:LONGEST_NAME])


def _evaluator(spec: EvaluatorSpec) -> EvaluatorSpec:
    if spec.type in IN_PROCESS_EVALUATORS:
        return spec
    fields = sorted(evaluator_type(spec.type).placeholders(spec.options))
    name = f"{spec.name[: LONGEST_NAME - len(SUFFIX)]}{SUFFIX}"
    return EvaluatorSpec("simulated", name, {"fields": list(fields)} if fields else {})
