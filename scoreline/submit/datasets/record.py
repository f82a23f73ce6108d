"""A record of a file before its fields are mapped, and its size limits."""

from typing import Any, NamedTuple

from pydantic import JsonValue

from scoreline.submit.datasets.errors import Unfit

MAX_ROW_BYTES = 2 * 1024 * 1024
"""One record as its file has it: beyond this it is more likely a missing newline than a case."""
MAX_DEPTH = 100
"""Lists and objects within each other: every reader of the log can follow this deep."""

MAX_NUMBER_LENGTH = 4_300
"""Characters of a number: beyond this, conversion from text takes quadratic time."""

Fields = dict[str, JsonValue]


class DatasetRecord(NamedTuple):
    """The fields of one record, and where it stands."""

    line: int
    """Its first line, or its number in a document that is not made of lines; from 1."""
    fields: Fields


def as_fields(value: Any) -> Fields:  # noqa: ANN401 - whatever a parser found
    """Return an object with named fields; raises `Unfit` for any other value."""
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


def size_text(size: int) -> str:
    """Write a size in bytes as people read it."""
    return f"{size // 1024**2} MB" if size >= 1024**2 else f"{size // 1024} kB"


def refuse_depth(depth: int, limit: int = MAX_DEPTH) -> None:
    """Raise `Unfit` where lists and objects go deeper than a limit."""
    if depth > limit:
        raise Unfit(f"lists and objects are nested more than {limit} deep: flatten them")


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
        refuse_depth(depth)
        depth += 1


def refuse_too_long(size: int) -> None:
    """Raise `Unfit` where a record is larger than `MAX_ROW_BYTES`."""
    if size > MAX_ROW_BYTES:
        raise Unfit(too_long(MAX_ROW_BYTES, "row"))


def too_long(limit: int, what: str) -> str:
    """Name a limit of size, and what usually is the cause."""
    return f"the {what} is longer than {size_text(limit)}: look for a missing quote or bracket, or split it"
