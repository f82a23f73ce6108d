"""A record as a file has it, before anybody says what its fields mean, and how large it may be."""

from typing import Any, NamedTuple

from pydantic import JsonValue

from scoreline.datasets.errors import Unfit

MAX_ROW_BYTES = 2 * 1024 * 1024
"""One record as its file has it: beyond this it is more likely a missing newline than a case."""
MAX_DEPTH = 100
"""Lists and objects within each other: every reader of the log can follow this deep."""

Fields = dict[str, JsonValue]


class Record(NamedTuple):
    """The fields of one record, and where it stands."""

    line: int
    """Its first line, or its number in a document that is not made of lines; from 1."""
    fields: Fields


def as_fields(value: Any) -> Fields:  # noqa: ANN401 - whatever a parser found
    """Take an object with named fields, or say what else it is; raises `Unfit`."""
    if isinstance(value, dict):
        return value
    raise Unfit(f"a row must be an object with named fields, this is {kind_of(value)}")


def kind_of(value: object) -> str:
    """Name a JSON value's kind, with its article."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list() | tuple():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"a {type(value).__name__}"


def refuse_too_deep(value: Any) -> None:  # noqa: ANN401 - any JSON value
    """Raise `Unfit` where lists and objects go deeper than `MAX_DEPTH`."""
    level, depth = [value], 0
    while level:
        level = [
            child
            for each in level
            if isinstance(each, dict | list)
            for child in (each.values() if isinstance(each, dict) else each)
        ]
        depth += 1
        if depth > MAX_DEPTH + 1:
            raise Unfit(f"lists and objects are nested more than {MAX_DEPTH} deep")


def refuse_too_long(size: int) -> None:
    """Raise `Unfit` where a record is larger than `MAX_ROW_BYTES`."""
    if size > MAX_ROW_BYTES:
        raise Unfit(f"the row is longer than {MAX_ROW_BYTES // 1024**2} MB")
