"""Templates: `{name}` is replaced by a field, once; `{{` and `}}` are plain braces.

What is put in is never looked at again, so data can't name a field. Braces around anything that is not
a name, as in a piece of JSON, stay as they are.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from pydantic import JsonValue
from pydantic_core import to_json

_PART = re.compile(r"\{\{|\}\}|\{([A-Za-z_][\w-]*(?:\.[\w-]+)*)\}")


class UnknownField(Exception):  # noqa: N818 - the caller adds the row
    """A template names a field that the case does not have."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is no field {name!r}")
        self.name = name


NOTHING: Mapping[str, JsonValue] = {}


class CaseLike(Protocol):
    """What a template needs of a case."""

    @property
    def id(self) -> str:
        """The case's name."""

    @property
    def input(self) -> JsonValue:
        """What is asked."""

    @property
    def expected(self) -> JsonValue:
        """What the answer should be."""

    @property
    def metadata(self) -> dict[str, JsonValue]:
        """The other columns."""


def case_fields(case: CaseLike, stored: Mapping[str, JsonValue] = NOTHING) -> dict[str, JsonValue]:
    """Lay out what a template may name: the case's own fields, and what earlier cases have left.

    An input that is a text may name what was left, and nothing else.
    """
    asked = _with_stored(case.input, stored) if stored and isinstance(case.input, str) else case.input
    return {**case.metadata, **stored, "id": case.id, "input": asked, "expected": case.expected}


def _with_stored(text: str, stored: Mapping[str, JsonValue]) -> str:
    return _PART.sub(lambda part: as_text(stored[part[1]]) if part[1] in stored else part[0], text)


@lru_cache(maxsize=1_024)
def placeholders(template: str) -> frozenset[str]:
    """Name the fields a template wants."""
    return frozenset(match[1] for match in _PART.finditer(template) if match[1])


def render(template: str, fields: Mapping[str, JsonValue]) -> str:
    """Fill a template in; raises `UnknownField`."""

    def put_in(match: re.Match[str]) -> str:
        name = match[1]
        return as_text(look_up(fields, name)) if name else match[0][0]

    return _PART.sub(put_in, template)


def look_up(fields: Mapping[str, JsonValue], path: str) -> JsonValue:
    """Find a field by its name, or by a dotted path into it; raises `UnknownField`."""
    if path in fields:
        return fields[path]
    found: Any = fields
    for part in path.split("."):
        if isinstance(found, Mapping) and part in found:
            found = found[part]
        elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
            found = found[int(part)]
        else:
            raise UnknownField(path)
    return found  # type: ignore[no-any-return]  # parts of JSON are JSON


def as_text(value: JsonValue) -> str:
    """Write a value as a person would: strings as they are, all else as JSON."""
    return value if isinstance(value, str) else to_json(value).decode()
