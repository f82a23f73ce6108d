"""The queries: one file per aggregate, each query a named and described section.

    -- name: read_progress
    -- Returns the counters of a batch by shard.
    SELECT ...

All files are parsed once, at import. A name is used once in the package, and a description is required.
"""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import LiteralString

from projections.sql import timestamps  # noqa: F401 - registers the loaders that every query's rows pass

SQL_FILES = sorted(Path(__file__).parent.glob("*.sql"))
NAME = re.compile(r"^-- name: (\w+)\n", re.MULTILINE)


class InvalidSection(ValueError):  # noqa: N818 - names what is invalid
    """A section of a `.sql` file has no description, no statement, or the name of another section."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"SQL section {name!r} {problem}")
        self.name = name


class UnknownQuery(LookupError):  # noqa: N818 - names what is unknown
    """No section has this name."""


def parse_sections(texts: Iterable[str]) -> dict[str, LiteralString]:
    """Split `.sql` texts into statements by name; raises `InvalidSection`."""
    statements: dict[str, LiteralString] = {}
    for text in texts:
        _, *parts = NAME.split(text)
        for name, section in zip(parts[::2], parts[1::2], strict=True):
            if name in statements:
                raise InvalidSection(name, "is defined twice")
            statements[name] = _statement(name, section)
    return statements


def _statement(name: str, section: str) -> LiteralString:
    lines = section.strip().splitlines()
    described = next((at for at, line in enumerate(lines) if not line.startswith("--")), len(lines))
    if described == 0:
        raise InvalidSection(name, "has no description")
    if described == len(lines):
        raise InvalidSection(name, "has no statement")
    return "\n".join(lines[described:])


STATEMENTS = parse_sections(path.read_text(encoding="utf-8") for path in SQL_FILES)


def query(name: str) -> LiteralString:
    """Return a statement by the name of its section; raises `UnknownQuery`."""
    try:
        return STATEMENTS[name]
    except KeyError:
        raise UnknownQuery(f"No SQL section is named {name!r}.") from None
