"""Requirements of a batch on its cases, checked at submission instead of by an executor an hour later."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Self

from pydantic import JsonValue

from domain.batch_spec import BatchSpec
from domain.template import UnknownField, look_up, placeholders
from eventlog.payloads import Case
from executor.registry import evaluator_type
from scoreline.submit.datasets.columns import no_column
from scoreline.submit.datasets.errors import Unfit

_NONE: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class CaseRequirements:
    """What templates and evaluators want of every case."""

    prompts: tuple[frozenset[str], ...]
    evaluators: tuple[tuple[str, frozenset[str]], ...]
    """Names of evaluators, each with the fields that its templates want."""
    expecting: tuple[str, ...]
    """Evaluators that can't judge without an expected value."""

    @classmethod
    def of(cls, batch: BatchSpec) -> Self:
        """Ask the types of a batch's evaluators, and read its templates."""
        found = [(spec, evaluator_type(spec.type)) for spec in batch.evaluators]
        is_asked = any(target.type != "recorded" for target in batch.targets)  # else no prompt is filled in
        return cls(
            tuple(placeholders(prompt) if is_asked else _NONE for prompt in batch.prompts),
            tuple((spec.name, type_.placeholders(spec.options)) for spec, type_ in found),
            tuple(spec.name for spec, type_ in found if type_.needs_expected),
        )

    def check(self, case: Case, *, stored: Collection[str]) -> None:
        """Raise `Unfit` where a case lacks something that no earlier case stores."""
        fields = fields_of(case)
        for names in self.prompts:
            _refuse_missing(names.difference(stored), fields, "the prompt")
        for evaluator, names in self.evaluators:
            _refuse_missing(names.difference(stored, ("output",)), fields, f"the evaluator {evaluator!r}")
        if case.expected is None and self.expecting:
            raise Unfit(f"there is no expected value, and the evaluator {self.expecting[0]!r} needs one")


def fields_of(case: Case) -> dict[str, JsonValue]:
    """Lay out what templates may name of a case: its own three fields first, if it has them."""
    own = {"id": case.id, "input": case.input, "expected": case.expected}
    return {**case.metadata, **{name: value for name, value in own.items() if value is not None}}


def _refuse_missing(names: Collection[str], fields: dict[str, JsonValue], whose: str) -> None:
    for name in names:
        try:
            look_up(fields, name)
        except UnknownField:
            raise Unfit(f"{no_column(name, fields)} Needed by {whose}.") from None
