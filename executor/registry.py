"""The registry of target and evaluator types, and the parser of their specs.

Built-in types are rows of a table, imported at first use (several names may share an address); plugins come
from entry points of the groups `scoreline.targets` and `scoreline.evaluators`. Only the requested type is
loaded, so a broken plugin fails only the batches that name it. A plugin can't replace a built-in name.
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
from executor.short_forms import ParsedReference, label_of, split_evaluator, split_mapping, split_target
from providers.table import PROVIDERS, suggest_model


@dataclass(frozen=True, slots=True)
class PluginGroup:
    """The types of targets, or of evaluators."""

    noun: str
    group: str
    builtin: Mapping[str, str]

    @property
    def names(self) -> tuple[str, ...]:
        """Every registered name, loadable or not."""
        plugins = {plugin.name for plugin in entry_points(group=self.group)}
        return (*self.builtin, *sorted(plugins - set(self.builtin)))


TARGETS = PluginGroup(
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
EVALUATORS = PluginGroup(
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


class UnknownType(ValueError):  # noqa: N818 - what is wrong with the name
    """No type of this name is registered."""

    def __init__(self, kind: str, name: str, known: tuple[str, ...]) -> None:
        self.kind, self.name, self.known = kind, name, known
        self.nearest = nearest(name, known)
        hint = f"did you mean {self.nearest!r}? " if self.nearest else ""
        super().__init__(f"there is no {kind} type {name!r}; {hint}known: {', '.join(known)}")


class BrokenType(ValueError):  # noqa: N818 - what is wrong with the plugin
    """The type is registered, but can't be loaded."""

    def __init__(self, kind: str, name: str, value: str, cause: Exception) -> None:
        self.kind, self.name, self.value, self.cause = kind, name, value, cause
        super().__init__(
            f"the {kind} type {name!r} ({value}) can't be loaded: {type(cause).__name__}: {cause}"
        )


def target_type(name: str) -> TargetType:
    """Return a type of targets; raises `UnknownType` or `BrokenType`."""
    return cast("TargetType", _load(TARGETS, name))


def evaluator_type(name: str) -> EvaluatorType:
    """Return a type of evaluators; raises `UnknownType` or `BrokenType`."""
    return cast("EvaluatorType", _load(EVALUATORS, name))


def make_target(spec: TargetSpec, environment: ExecutionEnvironment) -> Target:
    """Create the target that a spec describes."""
    return target_type(spec.type).make(spec.options, environment)


def make_evaluator(spec: EvaluatorSpec, environment: ExecutionEnvironment) -> Evaluator:
    """Create the evaluator that a spec describes."""
    return evaluator_type(spec.type).make(spec.name, spec.options, environment)


@runtime_checkable
class SupportsInlining(Protocol):
    """A type with options that name files, which are read where the batch is submitted."""

    def inline(self, options: Options, base: Path) -> Options:
        """Replace the names of files by their contents."""
        ...


@runtime_checkable
class EnforcesTimeout(Protocol):
    """A type that enforces its timeout itself, as one of its options: exceeding it is a score."""

    enforces_timeout: bool


@runtime_checkable
class HasDefaultTimeout(Protocol):
    """A type whose calls may take longer than the default timeout of evaluators."""

    default_timeout: float


TIMEOUT_MARGIN = 30.0
"""Seconds by which the executor's deadline exceeds the timeout that an evaluator enforces itself."""


_TARGET_KEYS = frozenset({"label", "rate_limits"})
_EVALUATOR_KEYS = frozenset({"name", "timeout", "rate_limits"})
"""Keys beside the options of a target or an evaluator, whatever its type."""


def parse_target(text: str | Mapping[str, JsonValue]) -> TargetSpec:
    """Parse the spec of a target; raises `UnknownType`, or `ValueError` with a message for the user."""
    parts = split_target(text) if isinstance(text, str) else split_mapping(text, beside=_TARGET_KEYS)
    try:
        target_type(parts.type)
    except UnknownType:
        if isinstance(text, str) and (suggestion := suggest_model(text.strip())):
            raise ValueError(f"there is no target {text!r}. Did you mean {suggestion}?") from None
        raise
    if parts.remainder:
        raise ValueError(f"{text!r}: to give it options write a mapping, {{type: {parts.type}, …}}")
    try:
        limits: Any = parts.settings.get("rate_limits")
        return TargetSpec(type=parts.type, label=label_of(parts), options=parts.options, rate_limits=limits)
    except ValidationError as error:
        raise _invalid(TARGETS, parts, error) from None


def parse_evaluator(text: str | Mapping[str, JsonValue], base: Path = Path()) -> EvaluatorSpec:
    """Parse the spec of an evaluator; files that it names are read now, relative to `base`."""
    parts = split_evaluator(text) if isinstance(text, str) else split_mapping(text, beside=_EVALUATOR_KEYS)
    evaluator = evaluator_type(parts.type)
    if parts.remainder:
        raise ValueError(f"{text!r}: to give it options write a mapping, {{type: {parts.type}, …}}")
    options = (
        evaluator.inline(parts.options, base) if isinstance(evaluator, SupportsInlining) else parts.options
    )
    settings: Options = {"name": parts.type, **parts.settings}
    if isinstance(evaluator, HasDefaultTimeout):
        settings = {"timeout": evaluator.default_timeout, **settings}
    if isinstance(evaluator, EnforcesTimeout) and "timeout" in settings:
        options = {**options, "timeout": settings["timeout"]}
        evaluator.check(options)
        settings["timeout"] = float(str(settings["timeout"])) + TIMEOUT_MARGIN
    try:
        return EvaluatorSpec(type=parts.type, options=options, **settings)  # type: ignore[arg-type]  # validated
    except ValidationError as error:
        raise _invalid(EVALUATORS, parts, error) from None


def _invalid(group: PluginGroup, parts: ParsedReference, error: ValidationError) -> ValueError:
    first = error.errors(include_url=False, include_input=False)[0]
    where = ".".join(map(str, first["loc"]))
    return ValueError(f"{group.noun} {parts.type!r}: {where}: {first['msg']}")


def _load(group: PluginGroup, name: str) -> object:
    if address := group.builtin.get(name):
        module, _, attribute = address.partition(":")
        loaded: object = getattr(import_module(module), attribute)
        return loaded[name] if isinstance(loaded, Mapping) else loaded
    plugins = [plugin for plugin in entry_points(group=group.group) if plugin.name == name]
    if not plugins:
        raise UnknownType(group.noun, name, group.names)
    return _load_plugin(group, plugins[0])


def _load_plugin(group: PluginGroup, plugin: EntryPoint) -> object:
    try:
        loaded: object = plugin.load()
        for method in ("check", "make"):
            getattr(loaded, method)
    except Exception as error:  # a plugin may raise anything at import
        raise BrokenType(group.noun, plugin.name, plugin.value, error) from error
    return loaded
