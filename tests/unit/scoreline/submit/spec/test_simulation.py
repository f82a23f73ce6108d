"""`mode: simulated`: whatever a spec names, nothing that makes a call is left of it."""

from pathlib import Path

import pytest

from domain.batch_spec import EvaluatorSpec, TargetSpec
from executor.registry import EVALUATORS, TARGETS, evaluator_type
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.components import Targets
from scoreline.submit.spec.errors import SpecError
from scoreline.submit.spec.simulation import (
    IN_PROCESS_EVALUATORS,
    IN_PROCESS_TARGETS,
    simulate_evaluators,
    simulate_targets,
)

JUDGE = {"model": "openai/gpt-5", "rubric": "Does {output} answer {question}?"}
OPTIONS = {"llm_judge": JUDGE, "code": {"program": "{output}"}, "python": {"function": "a:b"}}


def test_no_registered_target_is_called() -> None:
    """Of all types there are, in order, only simulated and recorded ones are left."""
    names = tuple(TARGETS.names)
    targets = Targets(tuple(TargetSpec(name, name) for name in names), Path(), {})
    simulated = simulate_targets(targets).specs
    assert {spec.type for spec in simulated} == IN_PROCESS_TARGETS
    assert [spec.label.removeprefix("simulated: ") for spec in simulated] == list(names)
    assert all(spec.label != name for spec, name in zip(simulated, names, strict=True) if spec.type != name)


def test_no_registered_evaluator_is_called() -> None:
    """Comparing evaluators stay; all others become simulated ones under a name with that word."""
    specs = tuple(
        EvaluatorSpec(name, name, OPTIONS.get(name, {}))  # type: ignore[arg-type]  # JSON
        for name in EVALUATORS.names
    )
    simulated = simulate_evaluators(specs)
    assert {spec.type for spec in simulated} == IN_PROCESS_EVALUATORS
    for before, after in zip(specs, simulated, strict=True):
        if before.type not in IN_PROCESS_EVALUATORS:
            assert after.name == f"{before.name} (simulated)"
            wanted = evaluator_type(before.type).placeholders(before.options)
            assert evaluator_type(after.type).placeholders(after.options) == wanted


SPEC = "dataset: cases.jsonl\ntarget: {target}\n"


@pytest.mark.parametrize("more", ["mode: simulated", "mode: simulated\nbatch_api: true"])
def test_a_file_that_contradicts_itself_is_refused(tmp_path: Path, more: str) -> None:
    """A mode beside a target that would be called is an error at the target's line."""
    spec = tmp_path / "s.yaml"
    spec.write_text(SPEC.format(target="python:app:answer") + more)
    with pytest.raises(SpecError, match=r"s.yaml, line 2: python:app:answer would be called.* Leave out"):
        make_plan(spec, {}, folder=tmp_path)


@pytest.mark.parametrize("flags", [{"targets": ["python:a:b"]}, {"evaluators": ["python:a:b"]}])
def test_flags_that_contradict_each_other_are_refused(tmp_path: Path, flags: dict[str, list[str]]) -> None:
    """A flag that needs a call is an error beside the mode."""
    with pytest.raises(SpecError, match="would be called"):
        make_plan(None, {"mode": "simulated", **flags}, folder=tmp_path)


def test_a_flag_simulates_what_a_file_would_call(tmp_path: Path) -> None:
    """Flags win over the file: its target is simulated, its provider batches are not used."""
    spec = tmp_path / "s.yaml"
    more = "batch_api: true\nevaluators: [exact, python:judges:polite]\n"
    spec.write_text(SPEC.format(target="anthropic/claude-haiku-4-5") + more)
    batch = make_plan(spec, {"mode": "simulated"}, folder=tmp_path).spec
    assert [each.type for each in batch.evaluators] == ["exact", "simulated"]
    assert [(each.type, each.label) for each in batch.targets] == [
        ("simulated", "simulated: anthropic/claude-haiku-4-5")
    ]
    assert batch.batch_api is None


def test_a_simulated_target_keeps_its_options(tmp_path: Path) -> None:
    """A target that makes no call stays as it is written, and so do recorded answers."""
    targets = [{"type": "simulated", "latency": 1.0}, "recorded:a.jsonl"]
    plan = make_plan(None, {"mode": "simulated", "targets": targets}, folder=tmp_path)
    assert [spec.options.get("latency") for spec in plan.spec.targets] == [1.0, None]
    assert list(plan.recorded) == [1]
