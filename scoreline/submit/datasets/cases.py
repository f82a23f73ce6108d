"""A record as a test case.

The case's own three fields are `id`, `input` and `expected`. Every other field of the row stays under its
own name, also the column that was taken as the input, and so do the keys of `metadata` where they take no
other's place: a template can name all of them.
"""

from typing import Any, NamedTuple

from pydantic import JsonValue, ValidationError
from pydantic_core import PydanticSerializationError, from_json, to_json

from eventlog import payloads as p
from scoreline.submit.datasets.columns import EXPECTED_NAMES, INPUT_NAMES, Columns, picked
from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.datasets.record import Fields, kind_of

MAX_CASE_BYTES = 512 * 1024
"""Half of what an event may hold: the answer travels in the same one when an attempt is opened again."""

_OWN = ("id", "input", "expected")
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class DatasetRow(NamedTuple):
    """One case, and where it stands."""

    case: p.Case
    tags: tuple[str, ...]
    line: int
    """Where it stands for people: a line, or the number of a record."""
    position: int
    """Its place among the rows, from 1."""
    is_named: bool = True
    """Whether the row has an id of its own, not just its position."""


def row_of(fields: Fields, position: int, *, line: int, columns: Columns) -> DatasetRow:
    """Make a case of a record; raises `Unfit`."""
    identifier = _identifier(picked(fields, columns.id, ("id",)), is_mapped=columns.id is not None)
    values = {
        "id": identifier if identifier is not None else str(position),
        "input": picked(fields, columns.input, INPUT_NAMES),
        "expected": picked(fields, columns.expected, EXPECTED_NAMES),
        "metadata": _others(fields, columns),
    }
    case = _checked(values)
    return DatasetRow(case, tags_of(case.metadata.get("tags")), line, position, identifier is not None)


def _identifier(value: JsonValue, *, is_mapped: bool) -> str | None:
    match value:
        case None if not is_mapped:
            return None
        case None | "":
            raise Unfit("the id is empty")
        case bool() | float() | list() | dict():
            raise Unfit(f"an id must be a text or a whole number, this is {kind_of(value)}")
        case _:
            return str(value)


def _others(fields: Fields, columns: Columns) -> Fields:
    """Keep every field but those that are the case's own under the same name."""
    own = {name for name in _OWN if getattr(columns, name) in (None, name)}
    others = {name: value for name, value in fields.items() if name not in own}
    metadata = fields.get("metadata")
    if isinstance(metadata, dict):
        for name, value in metadata.items():
            if name not in _OWN:
                others.setdefault(name, value)
    return others


def tags_of(value: JsonValue) -> tuple[str, ...]:
    """Read tags: a list of texts, or one text with commas; raises `Unfit`."""
    match value:
        case None:
            return ()
        case str():
            return tuple(tag.strip() for tag in value.split(",") if tag.strip())
        case list() if all(type(tag) in (str, int) for tag in value):
            return tuple(str(tag) for tag in value)
        case _:
            raise Unfit(f"`tags` must be a list of texts, this is {kind_of(value)}")


def _checked(values: Fields) -> p.Case:
    """Make the case if the log can hold it: no NULs, no numbers that JSON has not, not too large."""
    try:
        body = to_json(values)
    except PydanticSerializationError:
        values = safe(values)
        body = to_json(values)
    if b"\\u0000" in body:
        values = safe(values)
    if b"NaN" in body or b"Infinity" in body:
        _refuse_no_numbers(body)
    if len(body) > MAX_CASE_BYTES:
        raise Unfit(f"the case takes {len(body) // 1024} kB, {MAX_CASE_BYTES // 1024} are allowed")
    try:
        return p.Case(**values)  # type: ignore[arg-type]  # validated by the class
    except ValidationError as error:
        raise Unfit(_explained(error)) from None


def _refuse_no_numbers(body: bytes) -> None:
    try:
        from_json(body, allow_inf_nan=False)
    except ValueError:
        raise Unfit("NaN and Infinity are not JSON numbers") from None


def _explained(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    if first["loc"][:1] != ("id",):
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    if first["type"] == "string_too_long":
        return "the id is longer than 200 characters"
    return "the id has control characters, such as a line break"


def safe(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """Replace what Postgres and UTF-8 can't hold in text: NULs and halves of surrogate pairs."""
    match value:
        case str():
            return value.replace("\0", _REPLACEMENT).encode("utf-8", "replace").decode()
        case list():
            return [safe(item) for item in value]
        case dict():
            return {safe(key): safe(item) for key, item in value.items()}
        case _:
            return value
