"""The registry: short forms and mappings become specs, and specs targets or evaluators."""

from importlib.metadata import EntryPoint, EntryPoints

import pytest

from executor import registry
from executor.contract import ExecutionEnvironment
from executor.evaluators.comparison import ComparisonEvaluator
from executor.registry import (
    BrokenType,
    UnknownType,
    evaluator_type,
    make_evaluator,
    make_target,
    parse_evaluator,
    parse_target,
    target_type,
)
from executor.targets.recorded import RECORDED
from executor.targets.simulated import SIMULATED, SimulatedTarget


@pytest.fixture
def plugins(monkeypatch):
    """One entry point that works, one that does not."""
    group = "scoreline.targets"
    found = EntryPoints(
        [
            EntryPoint("ours", "executor.targets.simulated:SIMULATED", group),
            EntryPoint("ruin", "no_such_module:TARGET", group),
            EntryPoint("odd", "json:dumps", group),
            EntryPoint("recorded", "no_such_module:TARGET", group),
        ]
    )
    monkeypatch.setattr(registry, "entry_points", lambda group: found.select(group=group))


@pytest.mark.parametrize("text", ["simulatd", "simulatd:x", {"type": "simulatd"}])
def test_an_unknown_target_is_refused_with_the_nearest_name(text):
    """A typo is answered with the closest name."""
    with pytest.raises(UnknownType, match="there is no target type 'simulatd'; did you mean") as caught:
        parse_target(text)
    assert caught.value.nearest == "simulated"
    assert "http" in caught.value.known


@pytest.mark.parametrize("bad", ["simulated:fast", {"path": "x"}, {"type": 3}])
def test_an_invalid_form_is_rejected_with_an_example(bad):
    """Neither a short form nor a mapping with a type: the message shows the right form."""
    with pytest.raises(ValueError, match="mapping"):
        parse_target(bad)


def test_an_evaluator_has_a_name_and_a_time_out_besides_its_options():
    """`name` and `timeout` belong to the spec, everything else to the type."""
    spec = parse_evaluator({"type": "exact", "name": "same", "timeout": 5, "strip": False})
    assert (spec.name, spec.timeout, spec.options) == ("same", 5.0, {"strip": False})
    assert parse_evaluator("numeric").name == "numeric"


def test_an_invalid_timeout_is_rejected_by_name():
    """The message names value and evaluator."""
    with pytest.raises(ValueError, match="evaluator 'exact': timeout"):
        parse_evaluator({"type": "exact", "timeout": -1})


def test_an_unknown_evaluator_is_refused_with_the_nearest_name():
    """Evaluators and targets have separate namespaces."""
    with pytest.raises(UnknownType, match="no evaluator type 'exakt'; did you mean 'exact'"):
        parse_evaluator("exakt")


def test_a_spec_creates_its_target_or_evaluator():
    """Each with its options."""
    target = make_target(parse_target({"type": "simulated", "pass_rate": 0.5}), ExecutionEnvironment())
    assert isinstance(target, SimulatedTarget)
    assert target.options.pass_rate == 0.5
    evaluator = make_evaluator(parse_evaluator({"type": "exact", "name": "same"}), ExecutionEnvironment())
    assert isinstance(evaluator, ComparisonEvaluator)
    assert evaluator.name == "same"


def test_an_entry_point_is_a_type_like_any_other(plugins):
    """An installed plugin can be named, created and suggested."""
    assert target_type("ours") is SIMULATED
    assert parse_target("ours").type == "ours"


def test_a_broken_plugin_fails_only_by_its_own_name(plugins):
    """Other types load."""
    for name, value in (("ruin", "no_such_module:TARGET"), ("odd", "json:dumps")):
        with pytest.raises(
            BrokenType, match=f"the target type '{name}' .{value}. can't be loaded"
        ) as caught:
            target_type(name)
        assert caught.value.value == value
    assert target_type("ours") is target_type("simulated") is SIMULATED


def test_a_plugin_can_not_replace_a_built_in_type(plugins):
    """An entry point with a built-in name is not loaded."""
    assert target_type("recorded") is RECORDED
    assert registry.TARGETS.names.count("recorded") == 1


@pytest.mark.parametrize("name", registry.EVALUATORS.builtin)
def test_every_evaluator_rejects_an_unknown_option(name):
    """The message names the type; the option is never ignored."""
    with pytest.raises(ValueError, match=f"the {name} evaluator"):
        evaluator_type(name).check({"no_such_option": 1})


@pytest.mark.parametrize("name", registry.TARGETS.builtin)
def test_every_target_rejects_an_unknown_option(name):
    """The message names the type; the option is never ignored."""
    with pytest.raises(ValueError, match=f"the {name} target"):
        target_type(name).check({"no_such_option": 1})


def test_a_short_form_that_an_evaluator_does_not_have_is_refused():
    """The message shows how options are written."""
    with pytest.raises(ValueError, match="write a mapping"):
        parse_evaluator("exact:Paris")


def test_the_code_evaluator_enforces_its_own_timeout():
    """Exceeding it is a score; the executor's deadline is longer, for a sandbox that hangs."""
    spec = parse_evaluator({"type": "code", "program": "{output}", "timeout": 3})
    assert spec.options["timeout"] == 3
    assert spec.timeout > 3
