"""Targets and evaluators of a spec: their types asked whether the options make sense, secrets refused."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from domain.batch_spec import EvaluatorSpec, TargetSpec
from eventlog.secret_sources import holds_key
from executor.registry import evaluator_type, parse_evaluator, parse_target, target_type
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.sources import FileSource, Source
from scoreline.submit.spec.errors import SpecError
from scoreline.submit.spec.keys import Place, read_limits
from scoreline.submit.spec.plan import Recorded
from scoreline.submit.spec.secrets import find_secret
from scoreline.submit.spec.values import duration

LONGEST = 86_400.0
STORED_KEY = "holds what looks like a secret. Specs are stored and prompts are sent: take it out."
Described = Sequence[str | dict[str, Any]]
Evaluators = tuple[EvaluatorSpec, ...]


@dataclass(frozen=True, slots=True)
class Targets:
    """Targets, and where the paths they name begin."""

    specs: tuple[TargetSpec, ...]
    base: Path
    records: Mapping[int, str | None]
    """Of recorded ones: where in a document the answers are."""

    def recorded_beside(self, source: Source) -> dict[int, Recorded]:
        """Find the files of recorded targets; one that is the dataset itself is read in the same way."""
        return {number: self._recorded(number, records, source) for number, records in self.records.items()}

    def _recorded(self, number: int, records: str | None, source: Source) -> Recorded:
        options: Mapping[str, Any] = self.specs[number].options
        path = self.base / Path(options["path"]).expanduser()
        if records is None and isinstance(source, FileSource) and source.path.resolve() == path.resolve():
            records = source.columns.records
        return Recorded(path, Columns(records=records, id=options.get("id")), options.get("output"))


def read_targets(described: Described, place: Place, base: Path) -> Targets:
    """Read targets; raises `SpecError` with the place of the one that makes no sense."""
    specs, records = [], {}
    for number, value in enumerate(described):
        where = place("targets", number)
        try:
            spec, found = _target(_with_limits(value, where), where)
        except ValueError as error:
            raise SpecError(where, str(error)) from None
        if spec.type == "recorded":
            records[number] = found
        specs.append(spec)
    _refuse_namesakes([spec.label for spec in specs], place("targets"), "targets", "label")
    return Targets(tuple(specs), base.resolve(), records)


def _target(value: str | dict[str, Any], where: str) -> tuple[TargetSpec, str | None]:
    """Read one target; `records` of a recorded one is used at submission, not by executors."""
    records = None
    if isinstance(value, dict) and value.get("type") == "recorded":
        records = value.get("records")
        value = {key: value for key, value in value.items() if key != "records"}
        if not isinstance(records, str | None):
            raise SpecError(where, "`records` must be a dotted path to the list of answers")
    spec = parse_target(value)
    target_type(spec.type).check(spec.options)  # first: it knows what to write instead
    _refuse_secret(spec, where)
    return spec, records


def read_evaluators(described: Described, place: Place, base: Path) -> Evaluators:
    """Read evaluators; raises `SpecError` with the place of the one that makes no sense."""
    specs = []
    for number, value in enumerate(described):
        where = place("evaluators", number)
        try:
            spec = parse_evaluator(_with_limits(_in_seconds(value), where), base)
            _refuse_secret(spec, where)
            evaluator_type(spec.type).check(spec.options)
        except ValueError as error:
            raise SpecError(where, str(error)) from None
        specs.append(spec)
    _refuse_namesakes([spec.name for spec in specs], place("evaluators"), "evaluators", "name")
    return tuple(specs)


def _in_seconds(value: str | dict[str, Any]) -> str | dict[str, Any]:
    """Let an evaluator's time-out be written as the batch's may be: 30, 90s, 5m."""
    if isinstance(value, str) or value.get("timeout") is None:
        return value
    return {**value, "timeout": duration(LONGEST)(value["timeout"])}


def _with_limits(value: str | dict[str, Any], where: str) -> str | dict[str, Any]:
    if isinstance(value, str) or value.get("rate_limits") is None:
        return value
    return {**value, "rate_limits": read_limits(value["rate_limits"], "rate_limits", where)}


def _refuse_secret(spec: TargetSpec | EvaluatorSpec, where: str) -> None:
    title = spec.label if isinstance(spec, TargetSpec) else spec.name
    if holds_key(title):
        raise SpecError(where, f"the {'label' if isinstance(spec, TargetSpec) else 'name'} {STORED_KEY}")
    found = find_secret(spec.options)
    if found is not None:
        advice = (
            "Specs are stored: put it into the environment of the executors and write $NAME "
            "in a header or in the query of a url."
        )
        raise SpecError(where, f"the option `{found}` holds what looks like a secret. {advice}")


def refuse_keys(keys: Mapping[str, Any], place: Place) -> None:
    """Raise `SpecError` where a name, a prompt or a tag holds what has the shape of a well-known key."""
    for key in ("name", "project", "prompts", "tags"):
        value = keys.get(key) or ()
        if any(holds_key(str(each)) for each in ([value] if isinstance(value, str) else value)):
            raise SpecError(place(key), f"it {STORED_KEY}")


def _refuse_namesakes(names: Sequence[str], where: str, noun: str, key: str) -> None:
    for name, count in Counter(names).items():
        if count > 1:
            raise SpecError(where, f"{count} {noun} are called {name!r}: give each a `{key}` of its own")
