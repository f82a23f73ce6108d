"""Builds a plan from a spec file and flags. Both have the same keys; flags override the file.

Paths are relative to where they are written: in a file to its folder, in flags to the working directory. So
each of the two is read before they are merged.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from coordinator.provider_batches.requests import unfit
from domain.batch_spec import BatchSpec, Limits
from projections.ledger.batch import NewBatch
from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.sources import FileSource, ImportedSource, Source, SyntheticSource
from scoreline.submit.spec.components import Evaluators, Targets, read_evaluators, read_targets, refuse_keys
from scoreline.submit.spec.document import read_document
from scoreline.submit.spec.errors import SpecError
from scoreline.submit.spec.keys import SINGULAR, Place, read_keys
from scoreline.submit.spec.limit_flags import LIMIT_FLAGS, with_named_limits
from scoreline.submit.spec.metering import metered
from scoreline.submit.spec.plan import Plan
from scoreline.submit.spec.simulation import refuse_calls, simulate_evaluators, simulate_targets

UNSCORED_GATE = (
    "needs an evaluator: without one nothing is scored, and the gate could not fail. "
    "Add one: --evaluator exact (or `evaluator: exact` in the spec)"
)
DEFAULT_SYNTHETIC = 1_000
"""Cases of a simulated batch without a dataset."""

RUN_FROM_A_FOLDER = frozenset({"python", "command"})
_COLUMN_FLAGS = ("records", "id", "input", "expected")
_NAMED_LIMITS = "named_limits"
_AS_THEY_ARE = (
    "prompts",
    "repetitions",
    "retries",
    "timeout",
    "fail_fast_after",
    "batch_api",
    "accounts",
    "requires",
)
_COMMAND_LINE = "the command line"
_FLAGS = {meant: flag for flag, meant in SINGULAR.items()} | {"requires": "require"}
"""What people type for keys that are written in the plural."""
TO_BE_LEARNT = Limits()


@dataclass(frozen=True, slots=True)
class _SpecPart:
    """The file or the flags: validated keys, and its targets and evaluators if it has any."""

    keys: Mapping[str, Any]
    targets: Targets | None
    evaluators: Evaluators | None
    place: Place

    def refuse_calls(self) -> None:
        """Raise `SpecError` where this names something that would be called."""
        refuse_calls(self.targets, self.evaluators, batch_api=self.keys.get("batch_api"), place=self.place)


def make_plan(
    spec_file: Path | None,
    flags: Mapping[str, Any],
    *,
    folder: Path,
    limits: Limits = TO_BE_LEARNT,
    source: Source | None = None,
) -> Plan:
    """Read a spec file, if there is one, and flags by the names of its keys; raises `SpecError`.

    A flag that is None, or an empty list, was not given. Besides the keys, the columns of a dataset are
    flags of their own: `records`, `id`, `input` and `expected`. Each of the limits, and the `source` of
    cases, is the default where neither has it; `named_limits` has the limits of one target or judge.
    """
    written = _read_file(spec_file) if spec_file else _SpecPart({}, None, None, _flag)
    typed = _read_flags(flags, folder)
    keys = {**written.keys, **typed.keys}
    if keys.get("mode") == "simulated":
        typed.refuse_calls()
        if "mode" not in typed.keys:  # a flag simulates what the file would call; a file contradicts itself
            written.refuse_calls()
        keys.pop("batch_api", None)
    given_limits = (written.keys.get("limits", {}), typed.keys.get("limits", {}))
    keys["limits"] = {**asdict(limits), **given_limits[0], **given_limits[1]}
    keys = _with_columns(keys, {name: flags.get(name) for name in _COLUMN_FLAGS})
    targets = typed.targets or written.targets
    evaluators = typed.evaluators if typed.evaluators is not None else written.evaluators
    beside = spec_file.parent if spec_file else folder
    plan = _planned(keys, targets, evaluators, folder=beside, source=source)
    if named := flags.get(_NAMED_LIMITS):
        plan = plan.with_spec(metered(with_named_limits(plan.spec, named)))
    if typed.evaluators is None and not any(spec.type in RUN_FROM_A_FOLDER for spec in plan.spec.targets):
        # Nothing but the spec's own evaluators may be code that lies in a folder: it is the spec's.
        plan = plan.with_spec(replace(plan.spec, workdir=str(beside.resolve())))
    return plan


def _read_file(spec_file: Path) -> _SpecPart:
    document = read_document(spec_file)
    return _read_part(document.values, document.place, spec_file.parent)


def _read_flags(flags: Mapping[str, Any], folder: Path) -> _SpecPart:
    given = {
        name: value
        for name, value in flags.items()
        if name not in {*_COLUMN_FLAGS, _NAMED_LIMITS} and value is not None and value not in ([], ())
    }
    return _read_part(given, _flag, folder)


def _flag(key: str, *within: str | int) -> str:
    if key == "limits" and within:
        return LIMIT_FLAGS[str(within[0])]
    return f"--{_FLAGS.get(key, key).replace('_', '-')}"


def _read_part(values: Mapping[str, Any], place: Place, base: Path) -> _SpecPart:
    keys = read_keys(values, place)
    place = _as_written(values, place)
    refuse_keys(keys, place)
    targets = read_targets(keys.pop("targets"), place, base) if "targets" in keys else None
    evaluators = read_evaluators(keys.pop("evaluators"), place, base) if "evaluators" in keys else None
    dataset = keys.get("dataset", {})
    if "path" in dataset:
        keys["dataset"] = {**dataset, "path": base / Path(dataset["path"]).expanduser()}
    return _SpecPart(keys, targets, evaluators, place)


def _as_written(values: Mapping[str, Any], place: Place) -> Place:
    """Name places of keys by what they mean, whether they were written in the singular or the plural."""
    written = {SINGULAR.get(key, key): key for key in values}

    def place_of(key: str, *within: str | int) -> str:
        return place(written.get(key, key), *within)

    return place_of


def _with_columns(keys: dict[str, Any], columns: Mapping[str, Any]) -> dict[str, Any]:
    given = {name: value for name, value in columns.items() if value is not None}
    if not given:
        return keys
    if "path" not in keys.get("dataset", {}):
        raise SpecError(f"--{next(iter(given))}", "names a column of a file: give the file with --dataset")
    return {**keys, "dataset": {**keys["dataset"], **given}}


def _planned(
    keys: Mapping[str, Any],
    targets: Targets | None,
    evaluators: Evaluators | None,
    *,
    folder: Path,
    source: Source | None,
) -> Plan:
    is_simulated = keys.get("mode") == "simulated"
    if is_simulated:
        targets = simulate_targets(targets or read_targets(("simulated",), _flag, folder))
        given = evaluators if evaluators is not None else read_evaluators(("exact",), _flag, folder)
        evaluators = simulate_evaluators(given)
    if not targets:
        raise SpecError(_COMMAND_LINE, "which target? Give --target, or `target` in a spec")
    if keys.get("min_pass_rate") is not None and not evaluators:
        raise SpecError("--min-pass-rate", UNSCORED_GATE)
    source = _source(keys, source)
    return Plan(
        _new_batch(keys, _spec(keys, targets, evaluators or (), name=source.name), source),
        source,
        recorded=targets.recorded_beside(source),
        repetitions_given="repetitions" in keys,
        only_tagged=keys.get("tag", ()),
        limit=keys.get("limit"),
        cache=keys.get("cache", False),
        min_pass_rate=keys.get("min_pass_rate"),
        is_simulated=is_simulated,
    )


def _new_batch(keys: Mapping[str, Any], spec: BatchSpec, source: Source) -> NewBatch:
    return NewBatch(
        "",
        spec,
        project=keys.get("project", "default"),
        dataset=source.name,
        tags=keys.get("tags", ()),
        priority=keys.get("priority", 1),
        max_duration=timedelta(seconds=keys["max_duration"]) if "max_duration" in keys else None,
        max_cost_usd=keys.get("max_cost"),
        max_tokens=keys.get("max_tokens"),
    )


def _source(keys: Mapping[str, Any], default: Source | None) -> Source:
    dataset = dict(keys.get("dataset", {}))
    if "path" in dataset:
        return FileSource(dataset.pop("path"), Columns(**dataset))
    if "name" in dataset:
        return ImportedSource(keys.get("project", "default"), dataset["name"])
    if default:
        return default
    if keys.get("mode") == "simulated":
        return SyntheticSource(keys.get("limit", DEFAULT_SYNTHETIC))
    raise SpecError(_COMMAND_LINE, "which dataset? Give --dataset, or `dataset` in a spec")


def _spec(keys: Mapping[str, Any], targets: Targets, evaluators: Evaluators, *, name: str) -> BatchSpec:
    given = {key: keys[key] for key in _AS_THEY_ARE if key in keys}
    try:
        spec = BatchSpec(
            name=keys.get("name", name[:200]),
            targets=targets.specs,
            evaluators=evaluators,
            workdir=str(targets.base),
            limits=Limits(**keys["limits"]),
            max_concurrency=keys.get("max_concurrency"),
            **given,
        )
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(map(str, first["loc"]))
        raise SpecError(_COMMAND_LINE, f"`{where}`: {first['msg']}") from None
    if spec.batch_api and (why := unfit(spec)):
        raise SpecError("batch_api", why)
    return metered(spec)
