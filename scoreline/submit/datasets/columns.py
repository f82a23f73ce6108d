"""Which field of a row is what: by a mapping with dotted paths, else by the names people use."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from itertools import islice

from pydantic import JsonValue

from domain.template import UnknownField, look_up
from scoreline.submit.datasets.errors import Unfit
from scoreline.submit.datasets.record import Fields

INPUT_NAMES = ("input", "question", "prompt")
EXPECTED_NAMES = ("expected", "target", "ideal", "expectedOutput", "answer")
OUTPUT_NAMES = ("output", "prediction", "completion", "solution", "answer", "response")
"""Of a file with recorded answers."""

_COMPARED, _SHOWN = 1_000, 200
"""Columns that an error looks at, and characters of each: a row may have a hundred thousand."""


@dataclass(frozen=True, slots=True)
class Columns:
    """A mapping; what is None is looked for under the usual names."""

    records: str | None = None
    """Where in a JSON or YAML document the list of rows is."""
    id: str | None = None
    input: str | None = None
    expected: str | None = None


def picked(fields: Fields, mapped: str | None, names: Sequence[str]) -> JsonValue:
    """Find the value of a column: the mapped one, which must be there, else the first of the usual ones."""
    if mapped is not None:
        return mapped_value(fields, mapped)
    return next((fields[name] for name in names if name in fields), None)


def mapped_value(fields: Fields, name: str) -> JsonValue:
    """Find a mapped column; raises `Unfit` with the names that exist."""
    try:
        return look_up(fields, name)
    except UnknownField:
        raise Unfit(no_column(name, fields)) from None


def no_column(name: str, there: Iterable[str]) -> str:
    """Describe a missing column: which columns exist, and the closest match."""
    names = [each[:_SHOWN] for each in islice(there, _COMPARED)]
    near = get_close_matches(name, names, n=1)
    meant = f" Did you mean {near[0]!r}?" if near else ""
    more = ", …" if len(names) > 20 else ""
    return f"there is no column {name!r}. The row has: {', '.join(names[:20]) or 'none'}{more}.{meant}"
