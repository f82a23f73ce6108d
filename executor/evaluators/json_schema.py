"""Passes an output that is JSON and fits a schema (draft 2020-12).

The schema is given as it is, or as a file that is read where the batch is submitted, so executors need
no file. Nothing is ever fetched: a reference can only point into the schema or to the standard's own.
"""

from pathlib import Path
from typing import Annotated, Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError
from jsonschema_specifications import REGISTRY  # type: ignore[import-untyped]  # it has no types
from pydantic import AfterValidator, ConfigDict, Field, JsonValue
from pydantic_core import from_json
from referencing.exceptions import Unresolvable

from domain.batch_spec import Options
from executor.contract import Permanent, ScoringRequest
from executor.evaluators.comparison import ComparisonType, ComparisonVerdict, cut_out
from executor.evaluators.cpu_limit import OutOfTime, cpu_limit
from executor.evaluators.extract import Pattern, quoted
from executor.options import OptionModel

LIMIT = 0.5
"""Seconds of CPU time for one output."""
MAX_SCHEMA = 1_000_000
"""Bytes that are read of a file; a longer one ends too soon to be JSON."""


def _checked(schema: dict[str, JsonValue] | bool) -> dict[str, JsonValue] | bool:  # noqa: FBT001 - `true` is a schema
    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        raise ValueError(f"not a JSON schema: {error.message} at {error.json_path}") from None
    return schema


class JsonSchemaOptions(OptionModel):
    """The schema of the output."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, validate_by_name=False)

    json_schema: Annotated[dict[str, JsonValue] | bool, AfterValidator(_checked)] = Field(alias="schema")
    extract: Pattern | None = None
    """Cuts the JSON out of the output."""


class JsonSchemaType(ComparisonType[JsonSchemaOptions]):
    """Creates evaluators with a schema."""

    def inline(self, options: Options, base: Path) -> Options:
        """Put the schema in the place of the `path` it was given by."""
        if "path" not in options:
            return options
        if "schema" in options:
            raise ValueError("the json_schema evaluator takes a schema or a path, not both")
        rest = {key: value for key, value in options.items() if key != "path"}
        return {**rest, "schema": _read_schema(base / str(options["path"]))}


async def does_fit(options: JsonSchemaOptions, judged: ScoringRequest) -> ComparisonVerdict:
    """Hold the output against the schema."""
    text = await cut_out(options.extract, judged.output, of="the output")
    try:
        value = from_json(text, allow_inf_nan=False)
    except ValueError as error:
        return ComparisonVerdict(passed=False, reason=f"the output is not JSON ({error}): {quoted(text)}")
    misfit = _first_error(options.json_schema, value)
    if misfit is None:
        return ComparisonVerdict(passed=True)
    return ComparisonVerdict(passed=False, reason=f"{misfit.json_path}: {_shortened(misfit.message)}")


def _first_error(schema: dict[str, JsonValue] | bool, value: Any) -> ValidationError | None:  # noqa: ANN401, FBT001 - JSON
    # A registry of its own, or references would be fetched from wherever they point to.
    validator = Draft202012Validator(schema, registry=REGISTRY)
    try:
        with cpu_limit(LIMIT):
            return next(validator.iter_errors(value), None)
    except OutOfTime:
        raise Permanent("slow_schema", "the schema takes too long on this output") from None
    except (Unresolvable, RecursionError) as error:
        raise Permanent("bad_schema", f"the schema can't be followed: {_shortened(str(error))}") from None


def _read_schema(path: Path) -> JsonValue:
    try:
        with path.open("rb") as file:
            schema: JsonValue = from_json(file.read(MAX_SCHEMA))
    except (OSError, ValueError) as error:
        raise ValueError(f"the schema {str(path)!r} can't be read: {error}") from None
    return schema


def _shortened(text: str) -> str:
    return text if len(text) <= 300 else f"{text[:300]}…"


JSON_SCHEMA = JsonSchemaType("json_schema", JsonSchemaOptions, does_fit, needs_expected=False)
