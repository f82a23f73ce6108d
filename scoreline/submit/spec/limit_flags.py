"""Rate limits as flags: a plain number for every lane of the batch, NAME=NUMBER for one target or judge."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any, TypeVar

from domain.batch_spec import BatchSpec, EvaluatorSpec, Limits, TargetSpec
from scoreline.submit.spec.errors import SpecError
from scoreline.submit.spec.keys import read_limits

LIMIT_FLAGS = {
    "rpm": "--rpm-limit",
    "tpm": "--tpm-limit",
    "max_concurrency": "--max-concurrency",
    "delay": "--delay",
}
S = TypeVar("S", TargetSpec, EvaluatorSpec)
Named = Mapping[str, Mapping[str, Any]]
"""By the label of a target or the name of an evaluator: limits by their keys."""


def split_limit_flags(flags: Mapping[str, Sequence[str] | None]) -> tuple[dict[str, Any], Named]:
    """Split what was typed into limits of every lane, and those of one target or judge each."""
    plain: dict[str, Any] = {}
    named: dict[str, dict[str, Any]] = {}
    for key, values in flags.items():
        for value in values or ():
            name, _, number = value.rpartition("=")
            (named.setdefault(name, {}) if name else plain)[key] = _number(number)
    return plain, named


def _number(text: str) -> Any:  # noqa: ANN401 - a number where it is one; the key's own check refuses the rest
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number


def with_named_limits(batch: BatchSpec, named: Named) -> BatchSpec:
    """Give each target and judge the limits typed for it; raises `SpecError` for a name there is not."""
    known = [*(each.label for each in batch.targets), *(each.name for each in batch.evaluators)]
    for name, limits in named.items():
        if name not in known:
            where, names = LIMIT_FLAGS[next(iter(limits))], ", ".join(known)
            raise SpecError(where, f"no target or evaluator is named {name!r}; there are: {names}")
    return replace(
        batch,
        targets=tuple(_limited(each, named.get(each.label)) for each in batch.targets),
        evaluators=tuple(_limited(each, named.get(each.name)) for each in batch.evaluators),
    )


def _limited(spec: S, limits: Mapping[str, Any] | None) -> S:
    if not limits:
        return spec
    where = LIMIT_FLAGS[next(iter(limits))]
    before = asdict(spec.rate_limits) if spec.rate_limits else {}
    return replace(spec, rate_limits=Limits(**(before | read_limits(limits, "rate_limits", where))))
