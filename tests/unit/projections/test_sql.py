"""SQL sections: parsed once, each with a name of its own, a description and a caller."""

import re
from pathlib import Path

import pytest

from projections.sql import SQL_FILES, STATEMENTS, InvalidSection, UnknownQuery, parse_sections, query

ROOT = Path(__file__).parents[3]
CALLERS = ("projections", "storage_worker", "scoreline", "bench")
LINE_COMMENTS = re.compile(r"--.*")

TWO = """-- A file.

-- name: first
-- Returns one.
SELECT 1;

-- name: second
-- Returns two,
-- in two lines.
SELECT 2
-- with a comment
FROM two;
"""


def test_sections_are_split_and_descriptions_are_not_sent():
    """A statement keeps its own comments and loses the description."""
    assert parse_sections([TWO]) == {
        "first": "SELECT 1;",
        "second": "SELECT 2\n-- with a comment\nFROM two;",
    }


def test_a_duplicate_name_is_an_error_across_files():
    """Names are global: a second definition in another file is refused."""
    with pytest.raises(InvalidSection, match="'first' is defined twice"):
        parse_sections([TWO, "-- name: first\n-- Again.\nSELECT 3;\n"])


def test_a_section_without_a_description_is_an_error():
    """Every query has a description of its result."""
    with pytest.raises(InvalidSection, match="'bare' has no description"):
        parse_sections(["-- name: bare\nSELECT 1;\n"])


def test_a_section_without_a_statement_is_an_error():
    """A heading alone is refused."""
    with pytest.raises(InvalidSection, match="'empty' has no statement"):
        parse_sections(["-- name: empty\n-- Returns nothing.\n"])


def test_an_unknown_name_is_an_error():
    """A misspelt name fails with the name in the message."""
    with pytest.raises(UnknownQuery, match="'no_such_query'"):
        query("no_such_query")


def test_every_section_has_a_caller():
    """Each name occurs as a literal in the code that runs it."""
    code = "".join(path.read_text() for package in CALLERS for path in (ROOT / package).rglob("*.py"))
    assert [name for name in STATEMENTS if f'"{name}"' not in code] == []


def test_every_statement_of_a_file_belongs_to_a_section():
    """Before the first section a file holds comments only."""
    for path in SQL_FILES:
        before = path.read_text().partition("-- name: ")[0]
        assert not LINE_COMMENTS.sub("", before).strip(), path.name
