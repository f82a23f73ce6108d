"""Which targets and evaluators there are, and what people type to name them.

Built-in types are rows of a table, imported when first asked for (an address may be that of several types,
by their names); others come from entry points of the
groups `scoreline.targets` and `scoreline.evaluators`. Only the type asked for is loaded, so a broken one
is a problem of whoever asks for it and of nobody else. A built-in name can't be taken over.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Protocol, cast, runtime_checkable

from pydantic import JsonValue, ValidationError

from domain.batch_spec import EvaluatorSpec, Options, TargetSpec
from executor.contract import Evaluator, EvaluatorType, ExecutionEnvironment, Target, TargetType
from executor.options import nearest
from executor.short_forms import Parts, label_of, split_evaluator, split_mapping, split_target
from providers.table import PROVIDERS, suggest_model


@dataclass(frozen=True, slots=True)
class Kind:
    """Targets, or evaluators."""

    noun: str
    group: str
    builtin: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that can be asked for, broken or not."""
        plugins = {plugin.name for plugin in entry_points(group=self.group)}
        return (*self.builtin, *sorted(plugins - set(self.builtin)))


TARGETS = Kind(
    "target",
    "scoreline.targets",
    {
        "simulated": "executor.targets.simulated:SIMULATED",
        "recorded": "executor.targets.recorded:RECORDED",
        "python": "executor.targets.python:PYTHON",
        "command": "executor.targets.command:COMMAND",
        "container": "executor.targets.container:CONTAINER",
        "http": "executor.targets.http:HTTP",
        **dict.fromkeys(PROVIDERS, "executor.targets.model:MODELS"),
    },
)
EVALUATORS = Kind(
    "evaluator",
    "scoreline.evaluators",
    {
        "exact": "executor.evaluators.exact:EXACT",
        "contains": "executor.evaluators.contains:CONTAINS",
        "regex": "executor.evaluators.regex:REGEX",
        "numeric": "executor.evaluators.numeric:NUMERIC",
        "json_schema": "executor.evaluators.json_schema:JSON_SCHEMA",
        "code": "executor.evaluators.code:CODE",
        "python": "executor.evaluators.python:PYTHON",
        "llm_judge": "executor.evaluators.llm_judge:LLM_JUDGE",
        "simulated": "executor.evaluators.simulated:SIMULATED",
    },
)


class UnknownType(ValueError):  # noqa: N818 - what is wrong, to whoever typed the name
    """Nobody has registered a type of this name."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        self.kind, self.name, self.known = kind, name, known
        self.nearest = nearest(name, known)
        hint = f"did you mean {self.nearest!r}? " if self.nearest else ""
        super().__init__(f"there is no {kind} type {name!r}; {hint}known: {', '.join(known)}")


class BrokenType(ValueError):  # noqa: N818 - what is wrong, to whoever installed it
    """A type is registered, but can't be loaded."""

    def __init__(self, kind: str, name: str, value: str, cause: Exception) -> None:
        self.kind, self.name, self.value, self.cause = kind, name, value, cause
        super().__init__(
            f"the {kind} type {name!r} ({value}) can't be loaded: {type(cause).__name__}: {cause}"
        )


def target_type(name: str) -> TargetType:
    """Find a type of targets; raises `UnknownType` or `BrokenType`."""
    return cast("TargetType", _load(TARGETS, name))


def evaluator_type(name: str) -> EvaluatorType:
    """Find a type of evaluators; raises `UnknownType` or `BrokenType`."""
    return cast("EvaluatorType", _load(EVALUATORS, name))


def make_target(spec: TargetSpec, environment: ExecutionEnvironment) -> Target:
    """Make the target that a spec describes."""
    return target_type(spec.type).make(spec.options, environment)


def make_evaluator(spec: EvaluatorSpec, environment: ExecutionEnvironment) -> Evaluator:
    """Make the evaluator that a spec describes."""
    return evaluator_type(spec.type).make(spec.name, spec.options, environment)


@runtime_checkable
class Inlining(Protocol):
    """A type some of whose options are files, which must be read where the batch is submitted."""

    def inline(self, options: Options, base: Path) -> Options:
        """Put the contents of files in the place of their names."""
        ...


@runtime_checkable
class LimitsItself(Protocol):
    """A type for which running out of time is a verdict: the limit is an option of its own."""

    limits_itself: bool


@runtime_checkable
class Deadlined(Protocol):
    """A type whose calls may take longer than the deadline that evaluators have by default."""

    default_timeout: float


PATIENCE = 30.0
"""Seconds that an evaluator with a limit of its own may take beyond it."""


_TARGET_KEYS = frozenset({"label", "rate_limits"})
_EVALUATOR_KEYS = frozenset({"name", "timeout", "rate_limits"})
"""What stands beside the options of a target or an evaluator, whatever its type."""


def parse_target(text: str | Mapping[str, JsonValue]) -> TargetSpec:
    """Read a target as people write it; raises `UnknownType`, or `ValueError` with a sentence."""
    parts = split_target(text) if isinstance(text, str) else split_mapping(text, apart=_TARGET_KEYS)
    try:
        target_type(parts.type)
    except UnknownType:
        if isinstance(text, str) and (meant := suggest_model(text.strip())):
            raise ValueError(f"there is no target {text!r}. Did you mean {meant}?") from None
        raise
    if parts.rest:
        raise ValueError(f"{text!r}: to give it options write a mapping, {{type: {parts.type}, …}}")
    try:
        limits: Any = parts.said.get("rate_limits")
        return TargetSpec(type=parts.type, label=label_of(parts), options=parts.options, rate_limits=limits)
    except ValidationError as error:
        raise _misread(TARGETS, parts, error) from None


def parse_evaluator(text: str | Mapping[str, JsonValue], base: Path = Path()) -> EvaluatorSpec:
    """Read an evaluator as people write it; files that it names are read now, from `base`."""
    parts = split_evaluator(text) if isinstance(text, str) else split_mapping(text, apart=_EVALUATOR_KEYS)
    found = evaluator_type(parts.type)
    if parts.rest:
        raise ValueError(f"{text!r}: to give it options write a mapping, {{type: {parts.type}, …}}")
    options = found.inline(parts.options, base) if isinstance(found, Inlining) else parts.options
    said: Options = {"name": parts.type, **parts.said}
    if isinstance(found, Deadlined):
        said = {"timeout": found.default_timeout, **said}
    if isinstance(found, LimitsItself) and "timeout" in said:
        options = {**options, "timeout": said["timeout"]}
        found.check(options)
        said["timeout"] = float(str(said["timeout"])) + PATIENCE
    try:
        return EvaluatorSpec(type=parts.type, options=options, **said)  # type: ignore[arg-type]  # validated
    except ValidationError as error:
        raise _misread(EVALUATORS, parts, error) from None


def _misread(kind: Kind, parts: Parts, error: ValidationError) -> ValueError:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return ValueError(f"{kind.noun} {parts.type!r}: {where}: {first['msg']}")


def _load(kind: Kind, name: str) -> object:
    if address := kind.builtin.get(name):
        module, _, attribute = address.partition(":")
        found: object = getattr(import_module(module), attribute)
        return found[name] if isinstance(found, Mapping) else found
    plugins = [plugin for plugin in entry_points(group=kind.group) if plugin.name == name]
    if not plugins:
        raise UnknownType(kind.noun, name, kind.names)
    return _load_plugin(kind, plugins[0])


def _load_plugin(kind: Kind, plugin: EntryPoint) -> object:
    try:
        loaded: object = plugin.load()
        for wanted in ("check", "make"):
            getattr(loaded, wanted)
    except Exception as error:  # foreign code may raise anything while it is imported
        raise BrokenType(kind.noun, plugin.name, plugin.value, error) from error
    return loaded
